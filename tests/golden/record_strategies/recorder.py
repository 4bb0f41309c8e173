"""Records scenarios of strategies: makes them, has a team execute them, and
puts the answers beside the operations."""

import importlib
import json

from record_strategies.team import Team

OUTPUTS = ("status", "reason", "exception", "result", "state", "after",
           "trainable", "contexts", "end")


def module_of(kind):
    return importlib.import_module("record_strategies." + kind)


def key_of(topology):
    return json.dumps(topology, sort_keys=True)


class Recorder:
    """Executes scenarios of one kind; keeps the team of the last topology."""

    def __init__(self, kind):
        self.kind = kind
        self.module = module_of(kind)
        self.team = None
        self.topology = None

    def record(self, scenario):
        """The scenario with the answers of TensorFlow in place of its own."""
        topology = scenario["strategy"]
        if self.topology != key_of(topology) or scenario.get("fatal"):
            self.close()
        if self.team is None:
            self.team = Team(self.kind, topology)
            self.topology = key_of(topology)
        asked = {**scenario, "ops": [self.asked(op)
                                     for op in scenario["ops"]]}
        answers = self.team.execute(asked)
        if scenario.get("fatal"):
            self.close()
        return {**asked, "ops": [
            {**op, **self.module.joined(op, answer, topology)}
            for op, answer in zip(asked["ops"], answers)]}

    @staticmethod
    def asked(op):
        return {key: value for key, value in op.items()
                if key not in OUTPUTS}

    def close(self):
        if self.team is not None:
            self.team.close()
        self.team = None

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()


def write(kind, rng, seed, count, file):
    """Writes `count` rounds of scenarios of every topology, one a line."""
    with Recorder(kind) as recorder:
        for topology in recorder.module.TOPOLOGIES:
            for turn in range(count):
                for made in recorder.module.scenarios(rng, topology, turn):
                    scenario = {"format": 1, "file": kind,
                                "name": made["name"], "seed": seed,
                                "strategy": topology, **made}
                    file.write(json.dumps(recorder.record(scenario)) + "\n")


def differences(kind, lines):
    """Records scenarios again; yields (name, op before, op now) that differ."""
    with Recorder(kind) as recorder:
        for line in lines:
            before = json.loads(line)
            now = recorder.record(before)
            for old, new in zip(before["ops"], now["ops"]):
                if old != new:
                    yield before["name"], old, new
