"""What is broken on a host, one thing at a time, and the test that must notice."""

from __future__ import annotations

from dataclasses import dataclass

CACHE = "/var/cache/flightline"
AGENT = "/opt/aws/amazon-cloudwatch-agent"


@dataclass(frozen=True)
class Mutation:
    """`test` is file::function; both commands run as root on the host."""

    test: str
    what: str
    break_it: str
    restore: str


def edit(test: str, path: str, expression: str, what: str = "") -> Mutation:
    """Change a file with sed."""
    return Mutation(
        test,
        what or f"{path}: {expression}",
        f"cp -a {path} {path}.kept && sed -i '{expression}' {path}",
        f"mv {path}.kept {path}",
    )


def append(test: str, path: str, line: str) -> Mutation:
    """Add a line to a file."""
    return Mutation(
        test,
        f"{path}: a line added: {line}",
        f"cp -a {path} {path}.kept && echo '{line}' >> {path}",
        f"mv {path}.kept {path}",
    )


def gone(test: str, path: str) -> Mutation:
    """Take a file away."""
    return Mutation(test, f"{path} removed", f"mv {path} {path}.kept", f"mv {path}.kept {path}")


def mode(test: str, path: str, bits: str = "0666") -> Mutation:
    """Change a file's mode."""
    return Mutation(
        test,
        f"{path}: mode {bits}",
        f"stat -c %a {path} > /run/kept-mode && chmod {bits} {path}",
        f"chmod $(cat /run/kept-mode) {path}",
    )


def stop(test: str, unit: str) -> Mutation:
    """Stop a unit."""
    return Mutation(test, f"{unit} stopped", f"systemctl stop {unit}", f"systemctl start {unit}")


def disable(test: str, unit: str) -> Mutation:
    """Disable a unit."""
    return Mutation(test, f"{unit} disabled", f"systemctl disable --quiet {unit}", f"systemctl enable --quiet {unit}")


def remove(test: str, package: str) -> Mutation:
    """Remove a package."""
    put_back = f"DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet --allow-downgrades {package}=$(cat /run/kept-version)"
    keep = f"dpkg-query -W -f '${{Version}}' {package} > /run/kept-version"
    return Mutation(test, f"package {package} removed", f"{keep} && dpkg --remove --force-depends {package}", put_back)


HOST = [
    mode("test_host.py::test_nothing_is_world_writable", "/etc/hosts"),
    Mutation(
        "test_host.py::test_no_secret_is_written_down",
        "an access key in a unit file",
        "printf '[Service]\\nEnvironment=K=AKIA%s\\n' ABCDEFGHIJKLMNOP > /etc/systemd/system/leak.service",
        "rm /etc/systemd/system/leak.service",
    ),
    Mutation("test_host.py::test_root_has_no_password", "root given a password", "echo root:secret | chpasswd", "passwd --quiet --lock root; usermod -p '*' root"),
    Mutation("test_host.py::test_nobody_has_an_empty_password", "an account without password", "useradd loose && passwd --quiet --delete loose", "userdel loose"),
    Mutation(
        "test_host.py::test_no_unit_has_failed",
        "a unit that fails",
        "systemd-run --quiet --unit=broken /bin/false; sleep 1",
        "systemctl reset-failed broken.service",
    ),
    Mutation(
        "test_host.py::test_only_expected_ports_are_open",
        "a listener on port 4444",
        "systemd-run --quiet --unit=listener python3 -m http.server 4444; sleep 2",
        "systemctl stop listener.service",
    ),
    Mutation("test_host.py::test_ownership_of_the_system_is_left_alone", "/opt given to nobody", "chown nobody /opt", "chown root /opt"),
]  # fmt: skip
BASE = [
    remove("test_base.py::test_package_is_installed", "numactl"),
    Mutation("test_base.py::test_kernel_parameter", "vm.swappiness 60 in the kernel", "sysctl -qw vm.swappiness=60", "sysctl -qw vm.swappiness=1"),
    edit("test_base.py::test_kernel_parameter_survives_a_boot", "/etc/sysctl.d/90-flightline.conf", "/vm.swappiness/d"),
    edit("test_base.py::test_limit_of_login_sessions", "/etc/security/limits.d/90-flightline.conf", "s/unlimited/64/"),
    Mutation(
        "test_base.py::test_limit_of_services",
        "systemd's own limits back to its defaults",
        "mv /etc/systemd/system.conf.d/90-flightline.conf /run/kept && systemctl daemon-reexec",
        "mv /run/kept /etc/systemd/system.conf.d/90-flightline.conf && systemctl daemon-reexec",
    ),
    edit("test_base.py::test_ssh_option", "/etc/ssh/sshd_config.d/00-flightline.conf", "s/^PasswordAuthentication.*/PasswordAuthentication yes/"),
    stop("test_base.py::test_time_is_kept", "chrony"),
    edit("test_base.py::test_time_source", "/etc/chrony/chrony.conf", "/^server/d"),
    append("test_base.py::test_no_other_time_source", "/etc/chrony/chrony.conf", "pool 2.debian.pool.ntp.org iburst"),
    edit("test_base.py::test_journal_is_kept_over_a_boot", "/etc/systemd/journald.conf.d/90-flightline.conf", "s/persistent/volatile/"),
    edit("test_base.py::test_drivers_are_held_back_from_automatic_upgrades", "/etc/apt/apt.conf.d/60flightline", "/nvidia/d"),
    mode("test_base.py::test_file_belongs_to_root", "/etc/sysctl.d/90-flightline.conf"),
    Mutation(
        "test_base.py::test_huge_pages",
        "other huge pages in the kernel",
        "sysctl -n vm.nr_hugepages > /run/kept-pages && sysctl -qw vm.nr_hugepages=2",
        "sysctl -qw vm.nr_hugepages=$(cat /run/kept-pages)",
    ),
]  # fmt: skip
DRIVER = [
    Mutation(
        "test_nvidia_driver.py::test_driver_has_the_pinned_version",
        "a second driver library",
        "touch /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.470.1.1",
        "rm /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.470.1.1",
    ),
    Mutation(
        "test_nvidia_driver.py::test_no_driver_package_is_half_installed",
        "a package unpacked and not configured",
        "cd /root && apt-get download -qq nvidia-persistenced && dpkg --unpack ./nvidia-persistenced_*.deb",
        "dpkg --configure -a",
    ),
    edit("test_nvidia_driver.py::test_driver_cannot_change_by_itself", "/etc/apt/preferences.d/flightline-nvidia-driver", "s/1001/500/"),
    edit("test_nvidia_driver.py::test_nouveau_stays_out", "/etc/modprobe.d/flightline-nvidia.conf", "/blacklist/d"),
    edit("test_nvidia_driver.py::test_fabric_manager_has_the_drivers_version", "/usr/bin/nv-fabricmanager", "s/is : [0-9.]*/is : 470.1.1/"),
    disable("test_nvidia_driver.py::test_service_starts_at_boot", "nvidia-persistenced"),
    append("test_nvidia_driver.py::test_the_repository_is_signed_by_the_pinned_key", "/etc/apt/sources.list.d/flightline-nvidia.sources", "Trusted: yes"),
]  # fmt: skip
SOFTWARE = [
    edit("test_efa.py::test_bundle_has_the_pinned_version", "/opt/amazon/efa_installed_packages", "1s/[0-9.]*$/1.2.3/"),
    mode("test_efa.py::test_libfabric_is_there", "/opt/amazon/efa/bin/fi_info", "0644"),
    gone("test_efa.py::test_plugin_is_there", "/opt/amazon/ofi-nccl"),
    edit("test_efa.py::test_module_is_loaded_at_boot", "/etc/modules-load.d/flightline-efa.conf", "/^efa$/d"),
    mode("test_efa.py::test_the_archive_belongs_to_root", CACHE, "0777"),
    Mutation(
        "test_cuda_nccl.py::test_one_nccl_of_the_pinned_version",
        "a second NCCL",
        "touch /usr/local/lib/libnccl.so.2.19.3",
        "rm /usr/local/lib/libnccl.so.2.19.3",
    ),
    edit("test_cuda_nccl.py::test_compiler_has_the_pinned_release", "/usr/local/cuda/bin/nvcc", "s/release 13.0/release 12.1/"),
    gone("test_cuda_nccl.py::test_program_of_nccl_tests", "/opt/nccl-tests/build/alltoall_perf"),
    edit("test_cuda_nccl.py::test_nccl_tests_are_built_for_this_gpu", "/opt/nccl-tests/build/flightline-build.json", "s/\"90\"/\"80\"/"),
    remove("test_dcgm.py::test_version_is_the_pinned_one", "datacenter-gpu-manager-4-cuda13"),
    disable("test_dcgm.py::test_host_engine_starts_at_boot", "nvidia-dcgm"),
    stop("test_dcgm.py::test_host_engine_runs", "nvidia-dcgm"),
    gone("test_lustre_client.py::test_client_is_installed", "/usr/sbin/mount.lustre"),
    Mutation("test_lustre_client.py::test_file_systems_are_mounted_with_their_options", "/fsx unmounted", "systemctl stop fsx.mount", "systemctl start fsx.mount"),
    edit("test_lustre_client.py::test_mount_units_have_their_options", "/etc/systemd/system/fsx.mount", "s/flock/noflock/"),
    disable("test_lustre_client.py::test_file_systems_are_mounted_at_boot", "fsx.mount"),
    remove("test_container_toolkit.py::test_package_has_the_pinned_version", "libnvidia-container-tools"),
    edit("test_container_toolkit.py::test_engine_knows_the_runtime", "/etc/containerd/config.toml", "s/nvidia-container-runtime/runc/"),
    stop("test_container_toolkit.py::test_engine_runs", "containerd"),
    stop("test_cloudwatch_agent.py::test_agent_runs", "amazon-cloudwatch-agent"),
    disable("test_cloudwatch_agent.py::test_agent_starts_at_boot", "amazon-cloudwatch-agent"),
    edit("test_cloudwatch_agent.py::test_agent_has_loaded_the_configuration", f"{AGENT}/etc/amazon-cloudwatch-agent.d/file_flightline.json", "s/Flightline/Other/"),
    edit("test_cloudwatch_agent.py::test_metrics_go_to_the_clusters_namespace", f"{AGENT}/etc/flightline.json", "s/Flightline/Other/"),
    edit("test_cloudwatch_agent.py::test_logs_have_a_retention", f"{AGENT}/etc/flightline.json", "s/\"retention_in_days\": 90/\"retention_in_days\": 1/"),
    mode("test_cloudwatch_agent.py::test_configuration_belongs_to_root", f"{AGENT}/etc/flightline.json"),
]  # fmt: skip
CLUSTER = [
    mode("test_flightline_node.py::test_package_is_there_and_roots", "/opt/flightline/flightline-node.pyz"),
    edit("test_flightline_node.py::test_node_knows_its_instance_type", "/etc/flightline/node.json", "s/\"instance_type\": \"[^\"]*\"/\"instance_type\": \"g5.xlarge\"/"),
    disable("test_flightline_node.py::test_preflight_runs_at_every_boot", "flightline-boot"),
    edit("test_flightline_node.py::test_preflight_runs_before_the_scheduler", "/etc/systemd/system/flightline-boot.service", "s/slurmd.service//"),
    edit("test_flightline_node.py::test_logs_are_rotated", "/etc/logrotate.d/flightline", "s,/var/log/flightline,/var/log/other,g"),
    mode("test_flightline_node.py::test_check_program_belongs_to_root", "/usr/local/sbin/flightline-check", "0777"),
    Mutation("test_instance_store.py::test_store_is_mounted", "the store unmounted", "findmnt -no SOURCE,OPTIONS /mnt/local > /run/kept-mount; umount /mnt/local", "/usr/bin/env systemctl restart flightline-instance-store"),
    Mutation(
        "test_instance_store.py::test_store_has_its_mount_options",
        "the store mounted without noatime",
        "mount -o remount,strictatime /mnt/local",
        "mount -o remount,noatime /mnt/local",
    ),
    Mutation("test_instance_store.py::test_store_is_xfs", "a tmpfs over the store", "mount -t tmpfs tmpfs /mnt/local", "umount /mnt/local"),
    disable("test_instance_store.py::test_store_is_made_again_at_boot", "flightline-instance-store"),
    mode("test_instance_store.py::test_store_is_open_to_jobs_and_sticky", "/mnt/local", "0777"),
    edit("test_instance_store.py::test_boot_never_erases", "/etc/flightline/instance_store.json", "s/\"erase\": false/\"erase\": true/"),
    mode("test_cluster_ssh.py::test_key_is_readable_by_its_user_only", "/home/admin/.ssh/id_flightline_mpi", "0644"),
    edit("test_cluster_ssh.py::test_key_can_only_launch_mpi", "/home/admin/.ssh/authorized_keys", "s/restrict,.* ssh-ed25519/ssh-ed25519/"),
    mode("test_cluster_ssh.py::test_launch_program_belongs_to_root", "/usr/local/libexec/flightline-mpi-launch", "0777"),
    edit("test_cluster_ssh.py::test_host_keys_of_the_cluster_are_known", "/etc/ssh/ssh_known_hosts", "/ssh-ed25519/d"),
    append("test_cluster_ssh.py::test_host_key_checking_stays_on", "/etc/ssh/ssh_config.d/10-flightline-cluster.conf", "StrictHostKeyChecking no"),
    stop("test_slurm.py::test_scheduler_runs", "slurmd"),
    disable("test_slurm.py::test_scheduler_starts_at_boot", "slurmd"),
    stop("test_slurm.py::test_munge_runs", "munge"),
    mode("test_slurm.py::test_munge_key_is_secret", "/etc/munge/munge.key", "0644"),
    edit("test_slurm.py::test_flightline_is_asked", "/etc/slurm/slurm.conf", "/^Prolog=/d"),
]  # fmt: skip
MUTATIONS = [*HOST, *BASE, *DRIVER, *SOFTWARE, *CLUSTER]
UNBREAKABLE = {
    "test_base.py::test_swap_is_off": "a container has no swap of its own to turn on",
    "test_host.py::test_instance_metadata_needs_a_token": "the bed has no instance metadata service",
    "test_lustre_client.py::test_lnet_has_its_interface": "the bed's kernel has no Lustre modules",
    "test_nvidia_driver.py::test_the_driver_is_loaded": "the bed has no GPU to load a driver for",
}
"""Tests that are skipped on the bed, each with the reason; nothing shows here that they can fail."""
