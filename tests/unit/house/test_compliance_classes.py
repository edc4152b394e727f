"""Classes of change that only ask the tools: each mutation as the tools would tell it (written by hand), and the host as it should be."""

import re

import pytest

from tests.compliance import (
    test_base_time,
    test_host_boot,
    test_host_changes,
    test_host_cloud,
    test_host_network,
    test_host_room,
)
from tests.compliance.looking import ask
from tests.compliance.looking.strangers import Strangers

WHOLE = {
    "cat /proc/cmdline": "BOOT_IMAGE=/vmlinuz root=/dev/x ro console=ttyS0",
    "sed -nE": "root=/dev/x ro console=ttyS0",
    "sh -c 'for f in /etc/default/grub": "console=ttyS0",
    "findmnt --fstab": "/ rw\n/mnt/local noatime,nofail",
    "apt-config": 'Unattended-Upgrade::Automatic-Reboot "false";',
    "grep -E '^nameserver'": "nameserver 127.0.0.53",
    "resolvectl": "Link 2 (ens5): 10.0.0.2 fd00:ec2::253",
    "grep -E '^hosts:'": "hosts: files resolve [!UNAVAIL=return] dns",
    "ip -oneline": "2: ens5    inet 10.0.0.9/24 metric 100\n3: docker0    inet 172.17.0.1/16",
    "cat /sys/class/net/ens5/mtu": "9001",
    "readlink /sys/class/net/ens5": "../../../../bus/pci/drivers/ena",
    "df --output=size": "1M-blocks\n 8192",
    "findmnt --noheadings": "rw,nosuid,nodev",
    "df --local": "Use% IUse% Mounted on\n 40% - /\n 12% 3% /var",
    "date +%z": "+0000",
}
MUTATED = [
    (test_host_boot.test_the_next_boot_has_the_kernels_words_of_this_one, {"sh -c 'for f in /etc/default/grub": "console=ttyS0 iommu=pt"}, "iommu=pt"),
    (test_host_boot.test_no_lost_disk_stops_the_next_boot, {"findmnt --fstab": "/ rw\n/srv defaults"}, "nofail: /srv"),
    (test_host_boot.test_nothing_of_a_strangers_is_loaded_or_run_at_boot, {"find /etc/rc": "/etc/rc.local"}, "rc.local"),
    (test_host_boot.test_nothing_of_a_strangers_is_loaded_or_run_at_boot, {"grep -vE '^[[:space:]]*(#": "nouveau"}, "loads: nouveau"),
    (test_host_changes.test_no_upgrade_reboots_the_host, {"apt-config": 'x::Automatic-Reboot "true";'}, "may reboot"),
    (test_host_changes.test_no_upgrade_restarts_services_by_itself, {"grep -rhE": "$nrconf{restart} = 'a';"}, "needrestart"),
    (test_host_changes.test_no_installation_runs_a_strangers_program, {"grep -rlE": "/etc/apt/apt.conf.d/9x"}, "conf.d/9x"),
    (test_host_changes.test_no_package_is_half_configured, {"dpkg --audit": "not configured:\n numactl  NUMA"}, ": numactl"),
    (test_host_cloud.test_the_instances_role_is_who_it_is, {"grep -rnoE": "/root/.aws/config:2:endpoint_url"}, "endpoint_url"),
    (test_host_cloud.test_aws_has_the_addresses_that_dns_says, {"grep -nE '^[^#]": "7:192.0.2.1 s3.amazonaws.com"}, "192.0.2.1"),
    (test_host_cloud.test_no_certificate_authority_is_a_strangers, {"find /usr/local/share/ca": "/usr/x.crt"}, "x.crt"),
    (test_host_network.test_names_are_asked_inside_the_network, {"resolvectl": "Link 2 (ens5): 9.9.9.9"}, "of: 9.9.9.9"),
    (test_host_network.test_dns_is_asked_at_all, {"grep -E '^hosts:'": "hosts: files"}, "hosts: files"),
    (test_host_network.test_frames_have_the_networks_size, {"cat /sys/class": "1500"}, "ens5 has 1500, of 9001"),
    (test_host_room.test_shared_memory_has_room, {"df --output=size": "1M-blocks\n 64"}, "has 64 MiB"),
    (test_host_room.test_programs_may_run_where_compilers_write_them, {"findmnt --noh": "rw,noexec"}, "noexec: /tmp"),
    (test_host_room.test_no_disk_is_full, {"df --local": "Use% IUse% Mounted on\n 9% 99% /srv"}, "/srv 9%, inodes 99%"),
    (test_base_time.test_no_stranger_tells_the_clock_how_to_run, {"find /etc/chrony": "/etc/chrony/conf.d/x"}, "conf.d/x"),
    (test_base_time.test_logs_are_written_in_universal_time, {"date +%z": "+0900"}, r"\+0900"),
]  # fmt: skip


def host(answers):
    """Answers by how a command begins; nothing where nothing is given."""
    known = {**WHOLE, **answers}

    class Answering(ask.Asked):
        def answer(self, command, *arguments):
            line = ask._line((command, *arguments))
            said = next((text for start, text in reversed(known.items()) if line.startswith(start)), "")
            return ask.Answer(0, said, "")

    return Answering(None)


def look(test, answers):
    asked = host(answers)
    given = {"ask": asked, "strangers": Strangers(asked, {"compliance_known_files": []})}
    test(**{name: given[name] for name in test.__code__.co_varnames[: test.__code__.co_argcount]})


@pytest.mark.parametrize(("test", "answers", "said"), MUTATED, ids=lambda value: getattr(value, "__name__", None))
def test_a_mutation_is_found_and_the_whole_host_is_not_blamed(test, answers, said):
    look(test, {})
    with pytest.raises(pytest.fail.Exception) as finding:
        look(test, answers)
    assert re.search(rf"^saw: .*{said}.*; wanted: .+; do: ", str(finding.value)), finding.value
