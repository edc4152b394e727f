"""What else changes on a GPU host between two runs: a list made from the operator's side before the suite was looked at.

`python -m tests.compliance.breaking.mutate --only` takes them by their tests, as all others.
"""

from .break_things import Mutation, _slot, add, append, dropin, edit, mode

FOREIGN = "a file of somebody else: the roles remove nothing that they did not write; the finding names it"
SYSTEM = "a part of the system that no role writes; the finding names it"
DATA = "a person decides: it may be on purpose, and undoing it may lock somebody out"
SETTINGS = "test_host_settings.py::test"
STRANGER, PACKAGED, CHOSEN = (f"{SETTINGS}_no_setting_is_a_strangers", f"{SETTINGS}_settings_are_their_packages", f"{SETTINGS}_nothing_was_chosen_by_hand")  # fmt: skip
PLACES = {
    "/etc/modprobe.d/zz-peermem.conf": "install nvidia-peermem /bin/false", "/etc/modprobe.d/zz-mode.conf": "options nvidia NVreg_DeviceFileMode=0600",
    "/etc/modprobe.d/zz-soft.conf": "softdep nvidia pre: nouveau", "/etc/sysctl.d/zz-memory.conf": "vm.overcommit_memory = 2",
    "/etc/sysctl.d/zz-trace.conf": "kernel.yama.ptrace_scope = 1", "/etc/sysctl.d/zz-ports.conf": "net.ipv4.ip_local_port_range = 1024 1100",
    "/etc/sysctl.d/zz-neighbours.conf": "net.ipv4.neigh.default.gc_thresh3 = 64", "/etc/sysctl.d/zz-reclaim.conf": "vm.zone_reclaim_mode = 1",
    "/etc/sysctl.d/zz-spaces.conf": "user.max_user_namespaces = 0", "/etc/sysctl.d/zz-files.conf": "fs.nr_open = 1024",
    "/etc/sysctl.d/zz-core.conf": "kernel.core_pattern = |/srv/hook", "/etc/sysctl.d/zz-watches.conf": "fs.inotify.max_user_instances = 1",
    "/etc/sysctl.d/zz-path.conf": "net.ipv4.conf.all.rp_filter = 1", "/etc/security/limits.d/zz-processes.conf": "* hard nproc 100",
    "/etc/initramfs-tools/hooks/site": "#!/bin/sh", "/etc/kernel/postinst.d/zz-site": "#!/bin/sh", "/etc/systemd/system-generators/site": "#!/bin/sh",
    "/etc/systemd/system-environment-generators/site": "#!/bin/sh", "/etc/systemd/system-shutdown/site": "#!/bin/sh", "/etc/init.d/site": "#!/bin/sh",
    "/etc/binfmt.d/site.conf": ":site:E::site::/srv/run:", "/var/lib/cloud/scripts/per-boot/site.sh": "#!/bin/sh",
    "/etc/cloud/cloud.cfg.d/99-site.cfg": "bootcmd: [/srv/hook]",
    "/etc/logrotate.d/site": "/var/log/site.log {\n  postrotate\n  /srv/hook\n  endscript\n}", "/etc/update-motd.d/99-site": "#!/bin/sh",
    "/etc/dhcp/dhclient-exit-hooks.d/site": "true", "/etc/apt/preferences.d/zz-driver": "Package: nvidia-*\nPin: version 595*\nPin-Priority: 100",
    "/etc/apt/apt.conf.d/99proxy": 'Acquire::https::Proxy "http://192.0.2.1:9";', "/etc/apt/apt.conf.d/99release": 'APT::Get::List-Cleanup "false";',
    "/etc/dpkg/dpkg.cfg.d/site": "path-exclude=/usr/share/nowhere/*", "/etc/pip.conf": "[global]\nextra-index-url = https://packages.example.org/simple",
    "/root/.config/pip/pip.conf": "[global]\nindex-url = https://packages.example.org/simple", "/usr/local/lib/libfabric.so.1": "no library",
    "/root/.local/lib/python3.11/site-packages/usercustomize.py": "import os", "/root/.nccl.conf": "NCCL_ALGO=Tree",
    "/etc/environment.d/site.conf": "NCCL_P2P_DISABLE=1", "/etc/systemd/network/05-site.network": "[Match]\nName=none0\n[Link]\nMTUBytes=1280",
    "/etc/network/interfaces.d/site": "iface none0 inet manual", "/etc/network/if-up.d/site": "#!/bin/sh", "/etc/bash_completion.d/site": "true",
    "/etc/profile.d/umask.sh": "umask 022", "/root/.ssh/config": "Host gpu-*\n  ProxyCommand nc 192.0.2.1 22", "/root/.ssh/rc": "exit 0",
    "/etc/containerd/certs.d/docker.io/hosts.toml": 'server = "https://192.0.2.1"', "/etc/cdi/nvidia.yaml": "cdiVersion: 0.5.0",
    "/etc/enroot/enroot.conf.d/site.conf": "ENROOT_DATA_PATH /srv", "/etc/crictl.yaml": "runtime-endpoint: unix:///srv/other.sock",
    "/root/.docker/config.json": '{"credsStore": "site"}', "/root/.boto": "[Boto]\nproxy = 192.0.2.1", "/root/.aws/cli/alias": "[toplevel]",
    "/etc/amazon/ssm/amazon-ssm-agent.json": '{"Agent": {"Region": "eu-north-1"}}', "/etc/rsyslog.d/site.conf": "*.* @@192.0.2.1:514",
    "/etc/audit/rules.d/site.rules": "-a always,exit -F arch=b64 -S execve", "/etc/dbus-1/system.d/site.conf": "<busconfig/>",
    "/etc/tuned/active_profile": "powersave", "/etc/nvidia/nvidia-application-profiles-rc": "{}", "/etc/crypttab": "data /dev/nvme9n1 none luks",
    "/etc/pam.d/site": "auth sufficient pam_permit.so", "/etc/skel/.forward": "site@example.org",
}  # fmt: skip
"""Files that nobody answers for, by path."""
EDITED = {
    "/etc/login.defs": "s/^UMASK.*/UMASK 000/",
    "/etc/bash.bashrc": "$a ulimit -l 64",
    "/etc/logrotate.conf": "s/^rotate .*/rotate 0/",
    "/etc/gai.conf": "$a precedence ::ffff:0:0/96 100",
    "/etc/security/pam_env.conf": "$a NCCL_DEBUG DEFAULT=TRACE",
    "/etc/security/limits.conf": "$a # @site hard nproc 10",
    "/etc/systemd/logind.conf": "$a RemoveIPC=yes",
    "/etc/systemd/journald.conf": "$a RateLimitBurst=1",
    "/etc/systemd/system.conf": "$a CrashReboot=yes",
    "/etc/host.conf": "s/^multi on/multi off/",
    "/etc/skel/.bashrc": "$a export OMP_NUM_THREADS=1",
    "/etc/default/cron": "$a # READ_ENV=no",
}
"""Settings of packages, changed with sed."""
HOLD = "dpkg-query -W -f '${Status}' openssh-server"
PEER = "$(getent ahostsv4 gpu-01 | head -n 1 | cut -d ' ' -f 1)"
OWN, NET, ROOM = "test_host_accounts.py::test", "test_host_network.py::test", "test_host_room.py::test"


def _until(test: str, what: str, begin: str, end: str, whole: str, left: str = SYSTEM) -> Mutation:
    return Mutation(test, what, begin, end, whole, left)


BETWEEN = [
    *(add(STRANGER, path, text, FOREIGN, bits="0755" if text.startswith("#!") else "0644") for path, text in PLACES.items()),
    *(edit(PACKAGED, path, change, SYSTEM) for path, change in EDITED.items()),
    _until(CHOSEN, "openssh-server on hold", "apt-mark hold openssh-server", "apt-mark unhold openssh-server", f"{HOLD} | grep -q ^install"),
    _until(CHOSEN, "the alternative awk chosen by hand", "update-alternatives --set awk /usr/bin/mawk", "update-alternatives --auto awk", "! update-alternatives --query awk | grep -q 'Status: manual'"),
    _until(CHOSEN, "/etc/alternatives/awk made to point elsewhere", "ln -sfn /usr/bin/busybox /etc/alternatives/awk", "update-alternatives --auto awk; ln -sfn /usr/bin/mawk /etc/alternatives/awk", "[ $(readlink /etc/alternatives/awk) = /usr/bin/mawk ]"),
    _until(CHOSEN, "a foreign architecture", "dpkg --add-architecture armhf", "dpkg --remove-architecture armhf", "! dpkg --print-foreign-architectures | grep -q armhf"),
    _until(f"{NET}_only_the_usual_rules_choose_routes", "a rule makes gpu-01 unreachable", f"ip rule add to {PEER}/32 priority 900 unreachable", "ip rule del priority 900", "! ip rule | grep -q unreachable", DATA),
    _until(f"{NET}_no_neighbour_is_written_by_hand", "a wrong permanent neighbour", "ip neigh replace 10.213.99.99 lladdr 02:00:00:00:00:99 dev host0 nud permanent", "ip neigh del 10.213.99.99 dev host0", "! ip neigh show nud permanent | grep -q 10.213.99.99"),
    _until(f"{NET}_no_link_of_a_strangers_has_routes", "a link without a device has routes of the network", "ip tuntap add dev site0 mode tun && ip link set site0 up && ip route add 10.99.0.0/16 dev site0", "ip link del site0", "! ip link show site0 >/dev/null 2>&1", DATA),
    _until(f"{NET}_the_metadata_service_has_a_way", "a blackhole for the metadata service", "ip route add blackhole 169.254.169.254/32", "ip route del blackhole 169.254.169.254/32", "! ip route | grep -q 'blackhole 169.254.169.254'"),
    _until(f"{NET}_the_metadata_service_has_a_way", "the metadata service's address on lo", "ip address add 169.254.169.254/32 dev lo", "ip address del 169.254.169.254/32 dev lo", "! ip address show lo | grep -q 169.254.169.254"),
    add(f"{NET}_names_do_not_wait", "/etc/resolv.conf", "options timeout:30 attempts:5", SYSTEM),
    append(f"{NET}_no_wrapper_refuses_hosts", "/etc/hosts.deny", "ALL: ALL EXCEPT 10.0.0.0/255.0.0.0", SYSTEM),
    _until(f"{NET}_offloads_are_on", "the link's segmentation turned off", "ethtool -K host0 tso off gso off", "ethtool -K host0 tso on gso on", "ethtool -k host0 | grep -q '^generic-segmentation-offload: on'"),
    append("test_base_ssh.py::test_many_may_connect_at_once", "/etc/ssh/sshd_config", "MaxStartups 1:100:1", SYSTEM, "systemctl reload ssh"),
    append("test_base_ssh.py::test_many_may_connect_at_once", "/etc/ssh/sshd_config", "MaxSessions 1", SYSTEM, "systemctl reload ssh"),
    _until(f"{OWN}_logins_are_open", "the account that logs in expires tomorrow", "chage -E $(date -d tomorrow +%F) admin", "chage -E -1 admin", "getent shadow admin | cut -d: -f8 | grep -qx ''"),
    _until(f"{OWN}_logins_are_open", "the account's password has to be changed every month", "chage -d $(date +%F) -M 30 admin", "chage -M 99999 admin", "[ $(getent shadow admin | cut -d: -f5) = 99999 ]"),
    *(mode(f"{ROOM}_system_places_have_their_modes", path, bits, SYSTEM) for path, bits in (("/tmp", "0755"), ("/var/tmp", "0755"), ("/dev/shm", "0755"), ("/etc/passwd", "0600"), ("/etc/shadow", "0644"), ("/etc/group", "0600"), ("/etc/nsswitch.conf", "0600"), ("/etc/ssh/ssh_host_ed25519_key", "0640"), ("/home/admin", "0777"), ("/root", "0755"))),
    _until(f"{ROOM}_processes_can_be_seen", "/proc shows a user his own processes alone", "mount -o remount,hidepid=2 /proc", "mount -o remount,hidepid=0 /proc", "! findmnt -no OPTIONS /proc | grep -q 'hidepid=\\(2\\|invisible\\)'"),
    _until("test_instance_store.py::test_store_has_its_mount_options", "the store read-only", "mount -o remount,ro /mnt/local", "mount -o remount,rw /mnt/local", "findmnt -no OPTIONS /mnt/local | grep -q rw"),
    mode("test_instance_store.py::test_store_is_open_to_jobs_and_sticky", "/mnt/local", "0700"),
    edit("test_slurm.py::test_settings_are_the_ones_that_were_decided", "/etc/slurm/cgroup.conf", "$a ConstrainRAMSpace=no"),
    append("test_slurm.py::test_scheduler_reads_the_clusters_settings", "/etc/default/slurmd", 'SLURMD_OPTIONS="-N gpu-77"', SYSTEM),
    append("test_slurm.py::test_scheduler_reads_the_clusters_settings", "/etc/default/slurmd", 'SLURMD_OPTIONS="--conf-server 192.0.2.1"', SYSTEM),
    *(dropin("test_slurm.py::test_scheduler_runs", "slurmd.service", f"[Service]\n{line}", FOREIGN) for line in ("TasksMax=50", "MemoryMax=1G", "CPUAffinity=0", "IOSchedulingClass=idle")),
    *(dropin("test_host.py::test_systemds_own_settings_have_no_stranger", unit, f"[Service]\n{line}", FOREIGN) for unit, line in (("ssh.service", "MemoryMax=64M"), ("containerd.service", "LimitNOFILE=64"), ("nvidia-persistenced.service", "Nice=19"))),
    *(_until("test_host.py::test_systemds_own_settings_have_no_stranger", f"{unit}: {line}", f"systemctl set-property {unit} {line}", f"rm -rf /etc/systemd/system.control/{unit}.d; systemctl daemon-reload", f"! test -e /etc/systemd/system.control/{unit}.d") for unit, line in (("user.slice", "CPUQuota=10%"), ("system.slice", "MemoryHigh=2G"), ("slurmd.service", "IOWeight=1"))),
    *(add("test_host.py::test_systemds_own_settings_have_no_stranger", path, text, FOREIGN) for path, text in (("/etc/systemd/system/user-.slice.d/site.conf", "[Slice]\nMemoryMax=1G"), ("/etc/systemd/system.conf.d/zz-site.conf", "[Manager]\nDefaultTasksMax=64"), ("/etc/systemd/journald.conf.d/zz-site.conf", "[Journal]\nRateLimitBurst=1"), ("/etc/systemd/coredump.conf.d/site.conf", "[Coredump]\nStorage=none"), ("/etc/systemd/resolved.conf.d/site.conf", "[Resolve]\nDNS=192.0.2.1"), ("/etc/systemd/timesyncd.conf.d/site.conf", "[Time]\nNTP=192.0.2.1"), ("/etc/systemd/sleep.conf.d/site.conf", "[Sleep]\nAllowSuspend=yes"))),
    *(add("test_host.py::test_no_schedule_is_a_strangers", path, text, FOREIGN) for path, text in (("/var/spool/cron/atjobs/a00001", "#!/bin/sh"), ("/etc/systemd/user/site.service", "[Service]\nExecStart=/bin/true"), ("/root/.config/systemd/user/site.timer", "[Timer]\nOnCalendar=hourly"), ("/etc/cron.daily/site", "#!/bin/sh"), ("/etc/anacrontab", "1 5 site /srv/hook"))),
    add("test_base_time.py::test_the_hardware_clock_is_universal", "/etc/adjtime", "0.0 0 0.0\n0\nLOCAL", SYSTEM),
    add(f"{SETTINGS}_words_can_be_read", "/etc/default/locale", "LANG=xx_XX.UTF-8", SYSTEM),
    _until("test_host_state.py::test_the_record_is_the_one_that_this_side_keeps", "/etc/machine-id of another", f"mkdir -p /run/kept && cp -a /etc/machine-id {_slot('/etc/machine-id')} && echo 0123456789abcdef0123456789abcdef > /etc/machine-id", f"cp {_slot('/etc/machine-id')} /etc/machine-id", f"cmp -s {_slot('/etc/machine-id')} /etc/machine-id"),
]  # fmt: skip
