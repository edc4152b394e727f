"""Role cluster_ssh."""

import pytest

from .looking import say

LAUNCH = "/usr/local/libexec/flightline-mpi-launch"


@pytest.fixture
def home(ask, wanted):
    return ask("getent passwd %s", wanted["cluster_ssh_user"]).split(":")[5]


@pytest.fixture
def sources(site, ask, name):
    """The addresses that the key may be used from, as the role names them."""
    return site.of_role(name, "cluster_ssh", ask.facts())["_cluster_ssh_sources"]


def test_file_is_as_the_role_writes_it(as_the_role_writes_it):
    """It decides what the cluster's key may start."""
    as_the_role_writes_it()


def test_key_is_readable_by_its_user_only(ask, wanted, home):
    """sshd refuses a key that others can read, and others could use it."""
    path = f"{home}/.ssh/id_flightline_mpi"
    file = ask.file(path)
    uid = int(ask("id -u %s", wanted["cluster_ssh_user"]))
    say.same(f"{path} has owner and mode", (file["uid"], oct(file["mode"])), (uid, oct(0o600)))


def test_key_is_the_clusters(ask, wanted, home, peer):
    """A node with a key of its own reaches nobody, and the others believe that it is down."""
    path = f"{home}/.ssh/id_flightline_mpi.pub"
    other = peer(str(wanted["cluster_ssh_hosts"][0]))
    say.needs(other is not None, "the first node of the cluster does not answer")
    say.same("the key has SHA-256", ask.file(path)["sha256"], other.file(path)["sha256"])
    derived = ask("ssh-keygen -yf %s | cut -d' ' -f2", f"{home}/.ssh/id_flightline_mpi")
    say.same("the private key belongs to", derived, ask("cut -d' ' -f2 %s", path))


def test_key_can_only_launch_mpi(ask, home, sources):
    """The key lies on every node without a passphrase; it must not open a shell on the others."""
    public = ask("cut -d' ' -f2 %s", f"{home}/.ssh/id_flightline_mpi.pub")
    path = f"{home}/.ssh/authorized_keys"
    mine = [line for line in ask.lines("cat %s", path) if public in line]
    say.holds(mine, f"{path} lacks the cluster's key", "the key, restricted")
    head = f'restrict,from="{",".join(sources)}",command="{LAUNCH}" '
    found = [line[:60] for line in mine if not line.startswith(head)]
    say.none(f"{path} has the cluster's key as", found, head.strip(), f"remove the line, then {say.CONFIGURE}")


def test_host_keys_of_the_cluster_are_known(ask, wanted, site, peer):
    """A wrong key lets another machine be the node; a missing one ends mpirun with a question. Each node is asked for its own."""
    rows = [
        line.split() for line in ask.found("cat /etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2") if line[0] != "#"
    ]
    wrong = []
    for host in wanted["cluster_ssh_hosts"]:
        keys = [row for row in rows if host in row[0].split(",")]
        if not keys:
            wrong.append(f"{host} has no line")
        other = peer(str(host))
        if other is None:
            continue
        true = other("cut -d' ' -f1,2 /etc/ssh/ssh_host_ed25519_key.pub").split()
        wrong += [f"{host} has another key" for row in keys if row[1:3] != true]
    known = {str(host) for host in wanted["cluster_ssh_hosts"]}
    wrong += [
        f"{row[0][:40]} is no node of the cluster"
        for row in rows
        if row[0].startswith("@") or not known & set(row[0].split(","))
    ]
    say.none("ssh_known_hosts", wrong, "each node's own key, and nothing else", say.CONFIGURE)


def client(ask, user, host):
    """What the user's ssh would do with a host, all files and Match blocks applied."""
    rows = ask.lines("su - %s -c %s </dev/null", user, f"ssh -G {host}")
    found: dict[str, list[str]] = {}
    for row in rows:
        key, _, value = row.partition(" ")
        found.setdefault(key, []).append(value)
    return found


def test_host_key_checking_stays_on(ask, wanted):
    """Turned off, any machine on the network can be the other node. ssh itself is asked: a file that is read earlier wins."""
    wrong = []
    for host in wanted["cluster_ssh_hosts"]:
        seen = client(ask, wanted["cluster_ssh_user"], str(host))
        checks = {
            "stricthostkeychecking": ("true", "yes"),
            "globalknownhostsfile": ("/etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2",),
            "proxycommand": ("none",),
            "proxyjump": ("none",),
            "knownhostscommand": ("none",),
            "hostname": (str(host),),
            "batchmode": ("yes", "true"),
            "forwardagent": ("no",),
        }
        wrong += [
            f"{host}: {key} {seen[key][0]}" for key, good in checks.items() if key in seen and seen[key][0] not in good
        ]
        if "~/.ssh/id_flightline_mpi" not in seen.get("identityfile", []):
            wrong.append(f"{host}: identityfile {', '.join(seen.get('identityfile', []))}")
    do = f"grep -rnE 'StrictHostKey|KnownHosts|Proxy' /etc/ssh/ssh_config /etc/ssh/ssh_config.d {home}/.ssh/config; remove the line; {say.CONFIGURE}"
    say.none("ssh -G says", wrong, "strict checking against the cluster's own file, with the cluster's key", do)


@pytest.mark.parametrize("who", ["login", "root"])
def test_host_key_checking_is_off_for_nobody(ask, wanted, who):
    """Also hosts outside the cluster, such as those that data and code come from."""
    user = wanted["ansible_user"] if who == "login" else "root"
    seen = client(ask, user, "host.example.org")
    saw = f"ssh of {user}: StrictHostKeyChecking {seen['stricthostkeychecking'][0]}"
    places = f"/etc/ssh/ssh_config /etc/ssh/ssh_config.d {ask('getent passwd %s', user).split(':')[5]}/.ssh/config"
    do = f"grep -rnE 'StrictHostKeyChecking|UserKnownHostsFile' {places}; remove the line"
    say.holds(seen["stricthostkeychecking"][0] in ("ask", "true", "yes"), saw, "ask or yes", do)
    found = [one for one in seen.get("userknownhostsfile", []) if "/dev/null" in one]
    say.none(
        f"ssh of {user} keeps host keys in",
        found,
        "a file",
        do,
    )


def test_no_other_host_key_is_trusted(ask, wanted, home):
    """A line of the user's own file is believed beside the cluster's."""
    rows = ask.found("cat %s", f"{home}/.ssh/known_hosts")
    bad = [row.split()[0][:40] for row in rows if row.startswith("@cert-authority")]
    for host in wanted["cluster_ssh_hosts"]:
        found = ask.lines(
            "ssh-keygen -F %s -f %s 2>/dev/null | grep -v '^#' || true", str(host), f"{home}/.ssh/known_hosts"
        )
        known = ask.lines("ssh-keygen -F %s -f /etc/ssh/ssh_known_hosts 2>/dev/null | grep -v '^#' || true", str(host))
        keys = {row.split()[2] for row in known}
        bad += [str(host) for row in found if "ssh-ed25519" in row and row.split()[2] not in keys]
    say.none(
        f"{home}/.ssh/known_hosts has other keys for",
        bad,
        "none beside the cluster's",
        f"ssh-keygen -f {home}/.ssh/known_hosts -R HOST",
    )
