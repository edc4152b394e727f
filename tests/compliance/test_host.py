"""What holds for every host, whatever its roles."""

from __future__ import annotations

import re

import pytest

from . import say

SYSTEM_PATHS = ("/etc", "/usr", "/opt", "/var/lib", "/lib/systemd")
SECRET = r"(AKIA|ASIA)[A-Z0-9]{16}|aws_secret_access_key *[=:] *[^ ]|-----BEGIN [A-Z ]*PRIVATE KEY|xox[abp]-[0-9]|hooks[.]slack[.]com/services/T"
LOUD = re.compile(
    r"LD_(PRELOAD|AUDIT|LIBRARY_PATH)|PYTHON\w+|(NCCL|FI|OFI|CUDA|NVIDIA|OMPI|PMIX|UCX|SLURM|GLIBC|MALLOC)_\w+|BASH_ENV|ENV"
)
"""Variables that change which code runs, or how fast."""
SEARCHED = ("/opt/amazon", "/usr/local/cuda", "/usr/local/lib", "/usr/lib")
PAM_USUAL = re.compile(
    "pam_(access|cap|deny|ecryptfs|env|faildelay|faillock|fprintd|gnome_keyring|group|issue|keyinit|krb5|lastlog|ldap|limits|localuser"
    "|loginuid|mail|mkhomedir|motd|namespace|nologin|passwdqc|permit|pwhistory|pwquality|rootok|securetty|selinux|sepermit|shells"
    "|slurm_adopt|sss|succeed_if|systemd|time|timestamp|tty_audit|umask|unix|usertype|warn|wheel|winbind|xauth)"
)
VOUCHED = (
    "libc6",
    "glibc",
    "libpam*",
    "pam",
    "sudo",
    "openssh-*",
    "systemd*",
    "bash",
    "dash",
    "coreutils",
    "util-linux",
    "mount",
    "kmod",
)


@pytest.fixture
def passwd(ask):
    """Rows of the user database, as the system resolves it."""
    return [row.split(":") for row in ask.lines("getent passwd")]


@pytest.mark.parametrize("path", SYSTEM_PATHS)
def test_nothing_is_world_writable(ask, path):
    """A file that anybody may write lets any job on the node change what root runs. Sticky directories are shared on purpose."""
    found = ask("find %s -xdev ! -type l -perm -0002 ! -perm -1000 2>/dev/null || true", path).splitlines()
    say.none("world-writable", found, "nothing that anybody may write", "chmod o-w, and look who made it so")


@pytest.mark.parametrize("path", ["/etc/systemd/system", "/etc/flightline", "/var/log/flightline", "/etc/default"])
def test_no_secret_is_written_down(ask, path):
    """Unit files and logs are readable and shipped; keys belong to the instance role. Only the file's name is shown."""
    found = ask("grep -rIlE -e %s %s 2>/dev/null || true", SECRET, path).splitlines()
    say.none("a key or password in", found, "none in files", "revoke it, remove it, give the instance a role")


def test_root_has_no_password(ask):
    """Root is reached by sudo, which is logged with the person's name; a password would be shared and guessed."""
    mark = ask("getent shadow root").split(":")[1][:1]
    say.holds(mark in ("*", "!"), "root has a password", "none", "passwd --lock root")


def test_nobody_has_an_empty_password(ask):
    """An account without a password is open to whoever can start a session."""
    rows = [line.split(":") for line in ask.lines("getent shadow")]
    say.none("accounts without password", [row[0] for row in rows if row[1] == ""], "none", "passwd --lock NAME")


def test_only_root_has_roots_number(passwd):
    """Every account of number 0 is root under another name, and the log shows the other name."""
    say.none(
        "accounts of user id 0",
        [row[0] for row in passwd if row[2] == "0" and row[0] != "root"],
        "only root",
        "userdel it",
    )


def test_only_named_users_may_become_root(ask, wanted, passwd):
    """sudo itself is asked, for every account: rules come from many files and groups."""
    names = " ".join(row[0] for row in passwd)
    rows = ask.lines(f"for u in {names}; do echo \"$u $(sudo -n -l -U $u 2>/dev/null | grep -c '^ *(')\"; done")
    able = {name for name, count in (row.split() for row in rows) if count != "0"}
    say.none(
        "may run commands as others",
        sorted(able - {"root", *wanted["compliance_sudoers"]}),
        "users of compliance_sudoers",
        "sudo -l -U NAME; remove the rule",
    )


def test_sudo_asks_nothing_of_strangers(ask):
    """A setting that keeps the caller's environment or paths lets any command that is allowed become any other."""
    shown = ask("sudo -n -l -U root")
    kept = [
        word for word in ("!env_reset", "!secure_path", "setenv", "env_file") if re.search(rf"(^|[ ,]){word}", shown)
    ]
    kept += re.findall(r"env_keep\+?=\S*(?:LD_|PYTHON|BASH_ENV)\S*", shown)
    say.none("sudo is set to", kept, "the defaults of the distribution", "visudo -c; look in /etc/sudoers.d")


def test_keys_that_may_log_in_are_known(ask, wanted, own_login_keys, cluster_public_key):
    """Who has such a key has the node. The keys are asked of sshd's own list of files, for every account."""
    known = {*own_login_keys, *cluster_public_key, *map(str, wanted["compliance_login_keys"])}
    script = (
        'getent passwd | while IFS=: read -r user _ _ _ _ home _; do [ "$home" = / ] && continue;'
        " for file in $(sshd -T -C user=$user,host=localhost,addr=127.0.0.1 | sed -n 's/^authorizedkeysfile //p'); do"
        ' case $file in /*) ;; *) file=$home/$file ;; esac; file=$(echo "$file" | sed "s,%h,$home,g; s,%u,$user,g");'
        ' [ -f "$file" ] && ssh-keygen -lf "$file" | sed "s,^,$file ,"; done; done; true'
    )
    rows = [line.split() for line in ask.lines(script)]
    found = [f"{row[2]} in {row[0]}" for row in rows if row[2] not in known]
    say.none(
        "keys",
        found,
        "keys of compliance_login_keys, of this inventory or of the cluster",
        "remove it, or add its fingerprint",
    )


def test_no_set_user_id_program_is_a_strangers(ask, strangers):
    """Whoever starts such a program becomes its owner; a copied shell is a door."""
    found = ask("find / -xdev -type f -perm /6000 -print 2>/dev/null || true").splitlines()
    strangers.none("set-user-id or set-group-id", found, "only programs of packages")


def test_no_file_capability_is_a_strangers(ask, strangers):
    """A capability on a file is a set-user-id bit that find does not show."""
    if not ask.has("getcap"):
        pytest.skip("getcap is not installed")
    found = [
        line.rsplit(" ", 1)[0]
        for line in ask.lines("getcap -r /usr /opt /etc /home /root /srv /var/lib 2>/dev/null || true")
    ]
    strangers.none("capabilities on", found, "only programs of packages")


def test_no_program_hides_another(ask, strangers):
    """/usr/local comes first on every PATH: a wrapper of nvidia-smi there is what the checks would ask."""
    places = "/usr/local/sbin /usr/local/bin /root/bin /root/.local/bin"
    rows = ask.lines(
        f"for d in {places}; do [ -d $d ] && ls $d | while read -r f; do for o in /usr/sbin /usr/bin /opt/amazon/efa/bin"
        " /opt/amazon/openmpi/bin /usr/local/cuda/bin; do [ -e $o/$f ] && echo $d/$f && break; done; done; done; true"
    )
    strangers.none("programs hide the system's", rows, "each program once on the PATH")


def test_nothing_is_loaded_into_every_program(ask):
    """/etc/ld.so.preload puts a library into every process of the node, the checks included."""
    found = ask("cat /etc/ld.so.preload 2>/dev/null || true").split()
    say.none("/etc/ld.so.preload loads", found, "no such file", "rm /etc/ld.so.preload")


def test_libraries_come_from_known_places(ask, strangers):
    """The linker's cache decides which libnccl, libcuda and libfabric a program gets."""
    paths = ask.lines("grep -hvE '^ *(#|include|$)' /etc/ld.so.conf /etc/ld.so.conf.d/*.conf 2>/dev/null || true")
    files = ask.lines("ls -d /etc/ld.so.conf.d/*.conf 2>/dev/null || true")
    found = [path for path in paths if not path.startswith((*SEARCHED, "/lib"))]
    say.none(
        "libraries are searched in",
        found,
        f"below {', '.join(SEARCHED)}",
        f"remove it from {', '.join(strangers.among(files)) or '/etc/ld.so.conf'}; ldconfig",
    )


@pytest.mark.parametrize("who", ["login", "root", "services"])
def test_environment_is_the_sites(ask, wanted, who):
    """One NCCL or linker variable for all is a fabric at a tenth of its speed, or another library, on this node only."""
    user = {"login": wanted["ansible_user"], "root": "root"}.get(who, "")
    rows = ask.lines("su - %s -c env </dev/null", user) if user else ask.lines("systemctl show-environment")
    seen = dict(row.split("=", 1) for row in rows if "=" in row)
    allowed = {str(key): str(value) for key, value in wanted["compliance_environment"].items()}
    found = [
        f"{key}={value}" for key, value in sorted(seen.items()) if LOUD.fullmatch(key) and allowed.get(key) != value
    ]
    found = [entry for entry in found if not _searches_known(entry)]
    say.none(
        f"the environment of {who} has",
        found,
        "only what compliance_environment names",
        "look in /etc/environment, /etc/profile.d, /etc/environment.d, system.conf.d",
    )


def _searches_known(entry):
    name, _, value = entry.partition("=")
    return name == "LD_LIBRARY_PATH" and all(path.startswith(SEARCHED) for path in value.split(":") if path)


@pytest.mark.parametrize("who", ["login", "root"])
def test_programs_are_searched_in_known_places(ask, wanted, who):
    """A directory that somebody else may write, early on the PATH, decides what every name means."""
    user = wanted["ansible_user"] if who == "login" else "root"
    home = ask("getent passwd %s", user).split(":")[5]
    places = ask("su - %s -c 'echo $PATH' </dev/null", user).split(":")
    known = (
        "/usr/",
        "/bin",
        "/sbin",
        "/opt/amazon",
        "/opt/slurm",
        "/opt/aws",
        "/snap/bin",
        f"{home}/.local/bin",
        f"{home}/bin",
    )
    say.none(
        f"{user} searches programs in",
        [place for place in places if not place.startswith(known)],
        "the system's directories",
        "look in /etc/environment, /etc/login.defs and /etc/profile.d",
    )


def test_python_starts_without_strangers(ask, strangers):
    """A .pth or sitecustomize runs inside every Python program of root, flightline-check among them."""
    find = "find /usr/lib/python3* /usr/local/lib/python3* /etc/python3* -xdev \\( -name '*.pth' -o -name sitecustomize.py -o -name usercustomize.py \\) 2>/dev/null || true"
    strangers.none("python3 runs at its start", ask(find).splitlines(), "only files of packages")


def test_system_programs_are_their_packages(ask):
    """Everything else here asks these programs; a changed one can answer what it likes."""
    found = [path for path in ask.altered(VOUCHED) if not path.startswith("/etc/")]
    say.none(
        "not as their packages brought them", found, "unchanged files", "reinstall the package, and look who changed it"
    )


def test_no_unit_has_failed(ask):
    """A failed unit is something that a role promised and the node does not do."""
    failed = ask("systemctl list-units --state=failed --plain --no-legend || true").splitlines()
    say.none("failed units", [line.split()[0] for line in failed], "none", "journalctl -b -u UNIT")


def test_no_unit_is_a_strangers(ask, strangers):
    """What systemd starts at boot runs as root; each such unit is a package's, a role's or the site's."""
    names = [
        line.split()[0]
        for line in ask.lines(
            "systemctl list-unit-files --state=enabled,enabled-runtime,linked,linked-runtime --no-legend --full"
        )
    ]
    plain = [name for name in names if "@" not in name]
    rows = ask.lines(f"systemctl show --value --property=FragmentPath {' '.join(plain)}") if plain else []
    strangers.none("units start at boot from", [path for path in rows if path], "units of packages and roles")


def test_no_schedule_is_a_strangers(ask, strangers):
    """A job of cron runs beside the training, as root, at a time that nobody remembers."""
    find = "find /etc/cron.d /etc/cron.hourly /etc/cron.daily /etc/cron.weekly /etc/cron.monthly /var/spool/cron /etc/crontab -type f ! -name .placeholder 2>/dev/null || true"
    strangers.none("scheduled by", ask(find).splitlines(), "only packages' jobs")


def test_systemds_own_settings_have_no_stranger(ask, strangers):
    """Drop-ins for all units, generators and systemd's own settings change every service at once."""
    find = (
        "find /etc/systemd /run/systemd /usr/local/lib/systemd \\( -path '*/service.d/*' -o -path '*/mount.d/*' -o -path '*-generators/*'"
        " -o -path '*/system.conf.d/*' -o -path '*/user.conf.d/*' -o -path '*.service.d/*' -o -path '*.target.d/*' \\) -type f 2>/dev/null || true"
    )
    strangers.none("systemd is changed by", ask(find).splitlines(), "only files of packages and roles")


def test_only_expected_ports_are_open(ask, wanted):
    """Every further listener is a way in. Loopback does not count."""
    allowed = {22, *map(int, wanted["compliance_open_ports"])}
    if "slurm_cluster_name" in wanted:
        allowed |= {6817, 6818, 6819}
    rows = ask.lines("ss -Hltn")
    ports = {int(row.split()[3].rsplit(":", 1)[1]) for row in rows if not re.match(r"(127\.|\[::1\])", row.split()[3])}
    say.none(
        "listeners on TCP ports",
        sorted(ports - allowed),
        "22, Slurm's and compliance_open_ports",
        "ss -ltnp names the program",
    )


def test_instance_metadata_needs_a_token(ask):
    """IMDSv1 hands the instance role's keys to any request that a program can be tricked into sending."""
    said = ask("python3 -c %s", PROBE).strip()
    if said == "none":
        pytest.skip("no instance metadata service answers: not an EC2 instance")
    say.same(
        "the metadata service answers a request without token with",
        said,
        "401",
        "set HttpTokens required on the instance",
    )


PROBE = """
import urllib.request, urllib.error
try:
    print(urllib.request.urlopen('http://169.254.169.254/latest/meta-data/', timeout=2).status)
except urllib.error.HTTPError as error:
    print(error.code)
except OSError:
    print('none')
"""


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "/etc/shadow", "/etc/sudoers", "/etc/systemd/system", "/usr/local/sbin", "/opt"]
)
def test_ownership_of_the_system_is_left_alone(ask, path):
    """A role that changes the owner of a system path opens it, or locks the system out."""
    say.same(f"{path} belongs to user", ask.file(path)["uid"], 0, f"chown root {path}")


def test_nothing_is_mounted_over_the_system(ask, wanted):
    """A mount over a file hides what is there: the disk is right, and what runs is something else."""
    places = ask("findmnt --raw --noheadings --output TARGET").splitlines()
    own = (
        "/etc/",
        "/usr/",
        "/opt/",
        "/root/",
        "/var/lib/flightline",
        "/var/lib/dpkg",
        "/lib/",
        "/bin/",
        "/sbin/",
        "/home/",
    )
    known = [str(pattern) for pattern in wanted["compliance_known_files"]]
    found = [place for place in places if place.startswith(own) and place not in known]
    found = [
        place
        for place in found
        if ask.answer("test -d %s", place).rc or place.startswith(("/etc/", "/usr/", "/opt/flightline"))
    ]
    say.none("mounted over", found, "nothing over files of the system", "umount it, and look in /etc/fstab")


def test_authentication_modules_are_the_usual(ask):
    """One line in PAM lets everybody in, or writes passwords down."""
    rows = ask.lines("grep -rhE '^[^#]*pam_[a-z_0-9]+[.]so|^[^#]*/[^ ]*[.]so' /etc/pam.d")
    strange = {word for row in rows for word in re.findall(r"(\S+)\.so", row) if not PAM_USUAL.fullmatch(word)}
    open_doors = [
        row
        for row in rows
        if re.search(r"^\s*auth\s+(sufficient|\[success=(done|ok)[^]]*\])\s+pam_(permit|exec|succeed_if)", row)
    ]
    say.none(
        "PAM has",
        [*sorted(strange), *open_doors],
        "the distribution's modules, and none that lets everybody in",
        "pam-auth-update --force, or reinstall libpam-runtime",
    )


def test_names_are_looked_up_in_the_usual_places(ask):
    """Another source of users or hosts answers before the files that everybody reads."""
    usual = {
        "passwd": {"files", "systemd", "compat", "sss", "altfiles"},
        "group": {"files", "systemd", "compat", "sss", "altfiles"},
        "shadow": {"files", "compat", "sss", "systemd"},
        "hosts": {"files", "dns", "myhostname", "resolve", "mymachines", "mdns4_minimal", "mdns4"},
    }
    rows = dict(line.split(":", 1) for line in ask.lines("grep -vE '^ *(#|$)' /etc/nsswitch.conf"))
    found = [
        f"{name}: {source}"
        for name, known in usual.items()
        for source in re.sub(r"\[.*?\]", "", rows.get(name, "files")).split()
        if source not in known
    ]
    files_first = [
        name
        for name in usual
        if rows.get(name, "files").split()[:1] not in (["files"], ["compat"], ["sss"], ["myhostname"])
    ]
    say.none(
        "nsswitch.conf",
        [*found, *(f"{name} does not begin with files" for name in files_first)],
        "files first, then the usual sources",
        "correct /etc/nsswitch.conf",
    )


def test_hosts_of_the_inventory_have_their_addresses(ask, site, name):
    """A line in /etc/hosts sends MPI, Slurm and NCCL's bootstrap to another machine. A name that nobody knows is no harm."""
    wrong = []
    for host in site.hosts():
        address = str(site.expected(host).get("node_address") or site.expected(host).get("ansible_host") or "")
        seen = {row.split()[0] for row in ask("getent ahostsv4 %s || true", host).splitlines()}
        mine = host == name and all(one.startswith("127.") for one in seen)
        if re.fullmatch(r"[0-9.]+", address) and seen and address not in seen and not mine:
            wrong.append(f"{host} is {', '.join(sorted(seen))}, wanted {address}")
    local = ask("getent ahostsv4 localhost || true").splitlines()
    wrong += [f"localhost is {row.split()[0]}" for row in local if not row.startswith("127.")]
    say.none("names", wrong, "the inventory's addresses", "correct /etc/hosts or DNS")


def test_device_rules_are_not_a_strangers(ask, strangers):
    """A udev rule decides who may open a GPU or an EFA device, and what runs when one appears."""
    rows = ask(
        "grep -rlE -e 'RUN|nvidia|infiniband|efa|nvme|MODE|PROGRAM' /etc/udev/rules.d /run/udev/rules.d 2>/dev/null || true"
    ).splitlines()
    strangers.none("udev follows", rows, "only rules of packages")


def test_permissions_are_not_a_strangers(ask, strangers):
    """A rule of polkit that says YES lets any user stop the services of the node."""
    rows = ask(
        "find /etc/polkit-1/rules.d /etc/polkit-1/localauthority /usr/local/share/polkit-1 -type f 2>/dev/null || true"
    ).splitlines()
    strangers.none("polkit follows", rows, "only rules of packages")


def test_no_package_is_trusted_without_a_signature(ask):
    """A switch that turns apt's or dnf's verification off makes whoever holds the network root."""
    if ask.family() == "Debian":
        options = (
            "APT::Get::AllowUnauthenticated",
            "Acquire::AllowInsecureRepositories",
            "Acquire::AllowWeakRepositories",
            "Acquire::AllowDowngradeToInsecureRepositories",
            "APT::Authentication::TrustCDROM",
        )
        rows = dict(line.rstrip(";").split(" ", 1) for line in ask.lines("apt-config dump") if " " in line)
        found = [name for name in options if rows.get(name, '""').strip('"').lower() in ("1", "true", "yes", "on")]
        found += [
            name
            for name, value in rows.items()
            if name.endswith(("::Verify-Peer", "::Verify-Host")) and value.strip('"').lower() in ("false", "no", "0")
        ]
        found += ask(
            "grep -rniE 'trusted *[:=] *yes|allow-(insecure|weak) *[:=] *yes' /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null || true"
        ).splitlines()
    else:
        found = ask(
            "grep -rniE '^(gpgcheck|repo_gpgcheck|sslverify) *= *(0|no|false)' /etc/dnf /etc/yum.conf /etc/yum.repos.d 2>/dev/null || true"
        ).splitlines()
    say.none("packages are taken on trust:", found, "every repository signed and verified", "remove the option")


def test_no_package_source_is_a_strangers(ask, strangers):
    """A further repository, or a further key, can replace any package of the node."""
    own = ["/etc/apt/sources.list", "/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list.d/ubuntu.sources"]
    find = "find /etc/apt/sources.list.d /etc/apt/trusted.gpg.d /etc/apt/trusted.gpg /etc/yum.repos.d -type f -size +0 2>/dev/null || true"
    found = [
        path
        for path in ask(find).splitlines()
        if path not in own and "/flightline-" not in path and not path.endswith((".save", "~"))
    ]
    strangers.none("packages come from", found, "the distribution's and the roles' repositories")


def test_kernel_was_started_as_wanted(ask):
    """A word on the kernel's command line keeps a driver out or turns a protection off for the whole boot."""
    words = ask("cat /proc/cmdline").split()
    bad = r"(modprobe\.blacklist|module_blacklist|initcall_blacklist|rd\.driver\.blacklist)=\S*(nvidia|efa|ib_|gdrdrv)|systemd\.mask=\S+|init=/bin/\S+|single|nvidia\S*=\S+|swiotlb=force|iommu=\S*force"
    say.none(
        "the kernel was started with",
        [word for word in words if re.fullmatch(bad, word)],
        "nothing that keeps drivers or units out",
        "correct the boot loader and reboot",
    )


def test_log_of_units_is_not_thrown_away(ask, strangers):
    """tmpfiles lines of strangers empty the directories that the evidence is in."""
    files = ask(
        "grep -lE '^[^#]*(/var/log/flightline|/var/log/journal|/var/lib/flightline|/etc/flightline|/opt/flightline)' /etc/tmpfiles.d/* /run/tmpfiles.d/* 2>/dev/null || true"
    ).splitlines()
    strangers.none("tmpfiles clears or changes our directories in", files, "only lines of packages and roles")
