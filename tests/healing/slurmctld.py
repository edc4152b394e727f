"""A slurmctld in memory: what scontrol asks and prints, one request at a time. Simulated, after scontrol(1) of 22.05."""

import threading
import time
from datetime import datetime


class Slurmctld:
    """Nodes with state, reason and Extra. away: nobody answers. pause: called before each request, by its words."""

    def __init__(self, names, pause=lambda _: None, clock=time.time):
        self.nodes = {name: {"state": "IDLE", "reason": "", "since": "", "extra": ""} for name in names}
        self.lock, self.away, self.pause, self.most_out = threading.Lock(), False, pause, 0
        self.clock, self.ahead_s = clock, 0.0

    def out(self, name):
        return "DRAIN" in self.nodes[name]["state"]

    def ask(self, argv):
        """As slurm.asking: the answer, or AwayError."""
        from flightline_node.watch.slurm import AwayError

        self.pause(argv)
        if self.away:
            raise AwayError("scontrol: exit status 1 (Unable to contact slurm controller)")
        with self.lock:
            words = dict(word.split("=", 1) for word in argv if "=" in word)
            if "show" in argv:
                wanted = argv[4:] or argv[3:] if "-o" not in argv else argv[4:]
                return "\n".join(self.line(name) for name in wanted or self.nodes)
            node = self.nodes[words["NodeName"]]
            if "Extra" in words:
                node["extra"] = words["Extra"]
            if words.get("State") == "DRAIN":
                stamp = datetime.fromtimestamp(self.clock() + self.ahead_s).isoformat(timespec="seconds")
                node.update(state="IDLE+DRAIN", reason=words["Reason"], since=stamp)
            elif words.get("State") == "RESUME":
                node.update(state="IDLE", reason="")
            self.most_out = max(self.most_out, sum(self.out(name) for name in self.nodes))
            return ""

    def line(self, name):
        node = self.nodes[name]
        reason = f" Reason={node['reason']} [root@{node['since']}]" if node["reason"] else ""
        extra = f" Extra={node['extra']}" if node["extra"] else ""
        return f"NodeName={name} NodeAddr={name} NodeHostName={name} State={node['state']} CPUTot=192 Gres=gpu:8{reason}{extra}"
