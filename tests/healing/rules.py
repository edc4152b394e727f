"""What must hold of a world whatever happened to its controllers."""

from collections import Counter

DESTRUCTIVE = {"RESTART_APP", "RESET_GPU", "REBOOT"}


def check(world, limit, healed=True):
    effects = world.effects()
    steps = Counter(line["id"] for line in effects if line["what"] in DESTRUCTIVE)
    assert [name for name, times in steps.items() if times > 1] == [], "a destructive step was repeated"
    for line in effects:
        if line["what"] in DESTRUCTIVE:
            assert line["out"], f"{line}: the node was in service"
            assert not line["jobs"], f"{line}: jobs ran there"
        if line["what"] == "resume":
            assert not line["fault"], f"{line}: returned while sick"
    check_returns(effects)
    _within_budget(effects, limit)
    for host, node in world.state()["nodes"].items():
        if node["out"]:
            assert node["reason"].startswith("flightline: "), f"{host}: out without a reason"
        elif healed:
            assert not node["fault"], f"{host}: still sick and in service"


def check_returns(effects):
    judged = {}
    for line in effects:
        host, what = line["host"], line["what"]
        if what == "judged":
            judged[host] = line["go"]
        elif what in DESTRUCTIVE or what == "drain":
            judged.pop(host, None)
        elif what == "resume":
            assert judged.get(host), f"{host}: returned without a go after its last repair"


def _within_budget(effects, limit):
    out = set()
    for line in effects:
        if line["what"] == "drain":
            out.add(line["host"])
        elif line["what"] == "resume":
            out.discard(line["host"])
        assert len(out) <= limit, f"{sorted(out)} out, at most {limit}"
