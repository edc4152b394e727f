"""Who may be what on a host, whatever its roles."""

import re

import pytest

from .looking import say

PAM_USUAL = re.compile(
    "pam_(access|cap|deny|ecryptfs|env|faildelay|faillock|fprintd|gnome_keyring|group|issue|keyinit|krb5|lastlog|ldap|limits|localuser"
    "|loginuid|mail|mkhomedir|motd|namespace|nologin|passwdqc|permit|pwhistory|pwquality|rootok|securetty|selinux|sepermit|shells"
    "|slurm_adopt|sss|succeed_if|systemd|time|timestamp|tty_audit|umask|unix|usertype|warn|wheel|winbind|xauth)"
)


@pytest.fixture
def passwd(ask):
    """Rows of the user database, as the system resolves it."""
    return [row.split(":") for row in ask.lines("getent passwd")]


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
    do = "sed -i '/^NAME:/d' /etc/passwd /etc/shadow /etc/group /etc/gshadow (userdel refuses while root's processes run)"
    say.none("accounts of user id 0", [row[0] for row in passwd if row[2] == "0" and row[0] != "root"], "only root", do)


def test_only_named_users_may_become_root(ask, wanted, passwd):
    """sudo itself is asked, for every account: rules come from many files and groups."""
    names = " ".join(row[0] for row in passwd)
    rows = ask.lines(f"for u in {names}; do echo \"$u $(sudo -n -l -U $u 2>/dev/null | grep -c '^ *(')\"; done")
    able = {name for name, count in (row.split() for row in rows) if count != "0"}
    found = sorted(able - {"root", *wanted["compliance_sudoers"]})
    say.none(
        "may run commands as others",
        found,
        "users of compliance_sudoers",
        "grep -rn '^NAME' /etc/sudoers.d; remove the line; gpasswd -d NAME sudo",
    )


def test_sudo_asks_nothing_of_strangers(ask):
    """A setting that keeps the caller's environment or paths lets any command that is allowed become any other."""
    shown = ask("sudo -n -l -U root")
    kept = [
        word for word in ("!env_reset", "!secure_path", "setenv", "env_file") if re.search(rf"(^|[ ,]){word}", shown)
    ]
    kept += re.findall(r"env_keep\+?=\S*(?:LD_|PYTHON|BASH_ENV)\S*", shown)
    say.none(
        "sudo is set to",
        kept,
        "the defaults of the distribution",
        f"grep -rnE -e '{'|'.join(kept)}' /etc/sudoers /etc/sudoers.d; remove the line",
    )


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
    do = "remove it, or add its fingerprint"
    say.none("keys", found, "keys of compliance_login_keys, of this inventory or of the cluster", do)


def test_authentication_modules_are_the_usual(ask):
    """One line in PAM lets everybody in, or writes passwords down."""
    rows = ask.lines("grep -rnE '^[^#]*pam_[a-z_0-9]+[.]so|^[^#]*/[^ ]*[.]so' /etc/pam.d")
    door = r"\s*auth\s+(sufficient|\[success=(done|ok)[^]]*\])\s+pam_(permit|exec|succeed_if)"
    found = [
        row
        for row in rows
        if re.match(door, row.split(":", 2)[2])
        or any(not PAM_USUAL.fullmatch(word) for word in re.findall(r"(\S+)\.so", row.split(":", 2)[2]))
    ]
    do = "remove the lines, and look who added them"
    say.none("PAM has", found, "the distribution's modules, and none that lets everybody in", do)


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
        "sed -i 's/^hosts:.*/hosts: files dns/' /etc/nsswitch.conf; likewise the other lines",
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
    say.none("names", wrong, "the inventory's addresses", "grep -rnw HOST /etc/hosts; remove the line, or correct DNS")


def test_permissions_are_not_a_strangers(ask, strangers):
    """A rule of polkit that says YES lets any user stop the services of the node."""
    rows = ask.found("find /etc/polkit-1/rules.d /etc/polkit-1/localauthority /usr/local/share/polkit-1 -type f")
    strangers.none("polkit follows", rows, "only rules of packages")


def test_logins_are_open(ask, wanted):
    """An account that ends, a password that has to be changed, or nologin: one day nobody gets in, on every node at once."""
    user = str(wanted["ansible_user"])
    row = ask("getent shadow %s || true", user).split(":") + [""] * 9
    found = [f"the account ends on day {row[7]}"] if row[7] else []
    found += [f"its password is too old after {row[4]} days"] if row[4] not in ("", "99999", "-1") else []
    found += ask.found("ls /etc/nologin /run/nologin")
    say.none(f"logins of {user}", found, "open without an end", f"chage -E -1 -M 99999 {user}; rm /etc/nologin")
