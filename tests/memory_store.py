"""A run store for tests that judge records without a file."""

from flightline.store.sqlite import Run


class MemoryStore:
    def __init__(self, run, records):
        self._run, self._records, self._late = run, dict(records), {}

    def start(self, run):
        self._run = run

    def save(self, run_id, record):
        return self._records.setdefault(str(record["host"]), dict(record)) is record

    def finish(self, run_id, finished_at, verdict):
        run = self._run
        self._run = Run(run.run_id, run.started_at, run.level, run.inventory, run.hosts, finished_at, verdict)

    def run(self, run_id):
        return self._run

    def runs(self, limit=20):
        return [self._run]

    def records(self, run_id):
        yield from self._records.values()

    def answered(self, run_id):
        return set(self._records)

    def save_late_record(self, run_id, record):
        return self._late.setdefault(str(record["host"]), dict(record)) is record

    def late(self, run_id):
        return list(self._late.values())

    def history(self, name, limit=50):
        return []

    def close(self): ...  # nothing to give back
