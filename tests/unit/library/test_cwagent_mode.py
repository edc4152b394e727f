"""A configuration that others may write is written anew, although its text is right."""

import json

from flightline_host.host import Host, ProgramResult
from flightline_host.software import cwagent

CONFIG = {"metrics": {"metrics_collected": {"mem": {}}}}


def test_a_file_that_others_may_write_is_made_anew(tmp_path):
    path = f"{cwagent.HOME}/etc/flightline.json"
    host = Host(
        run=lambda argv, cwd, env: ProgramResult(0, '{"status": "running", "configstatus": "configured"}', ""),
        root=str(tmp_path),
    )
    host.write(cwagent.SCHEMA, json.dumps({"type": "object"}))
    for place in (path, cwagent.applied(path)):
        host.write(place, cwagent.rendered(CONFIG))
    wanted = {"config": CONFIG, "path": path, "schema": cwagent.SCHEMA, "state": "started"}
    assert not cwagent.ensure(host, wanted, False).changed
    (tmp_path / path.lstrip("/")).chmod(0o666)
    assert cwagent.ensure(host, wanted, False).changed
    assert host.mode(path) == 0o644
