"""Role host_state: the record of what was decided, and what it says of the host itself."""

from .looking import decided, say


def test_the_record_is_the_one_that_this_side_keeps(ask, site, name):
    """Whoever changes it on the host changes what the host seems to be meant to be; the signature is this side's."""
    kept, path = decided.record(site, name, ask), decided.host_state.ON_THE_HOST
    seen = ask.json(path).get("state", {})
    # A node that configures itself at boot decides nothing of what needs other nodes (slurm).
    parts = {part: decision for part, decision in kept["parts"].items() if part in seen.get("parts", {})}
    found = [
        f"{part}: {seen['parts'][part]}, wanted {parts[part]}" for part in parts if seen["parts"][part] != parts[part]
    ]
    found += [f"{key} {seen.get(key)}, wanted {kept[key]}" for key in ("name", "machine") if seen.get(key) != kept[key]]
    say.none(f"{path} says", found, "the record kept here")
    file = ask.file(path)
    say.same("it has owner and mode", (file["uid"], oct(file["mode"])), (0, oct(0o644)))


def test_the_host_has_the_name_that_was_recorded(ask, site, name):
    """slurmd finds its line, and the prolog the node that it drains, by this name; a boot sets the one on disk again."""
    wanted = decided.record(site, name, ask)["name"]
    on_disk = ask("cat /etc/hostname 2>/dev/null || true").strip().partition(".")[0]
    do = f"hostnamectl set-hostname {wanted}"
    say.same("the host is called", ask("uname -n").partition(".")[0], wanted, do)
    say.same("at boot it is called", on_disk or wanted, wanted, do)
