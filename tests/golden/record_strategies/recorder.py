"""Records scenarios of strategies: makes them, has a team execute them, and
puts the answers beside the operations."""

import importlib
import json

from record_strategies.forms import same
from record_strategies.team import Team
from recording import Random

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


def made(module, rng, topology, count):
    """`count` scenarios of a topology, from as many rounds as that takes."""
    scenarios = []
    turn = 0
    while len(scenarios) < count:
        a_round = list(module.scenarios(rng, topology, turn))
        rng.shuffle(a_round)
        scenarios += a_round
        turn += 1
    # Those that break the collectives of their processes need a team each.
    return sorted(scenarios[:count], key=lambda x: bool(x.get("fatal")))


def write(kind, seed, count, file):
    """Writes `count` random scenarios of every topology, one a line."""
    rng = Random("%s %d" % (kind, seed))
    with Recorder(kind) as recorder:
        for topology in recorder.module.TOPOLOGIES:
            for scenario in made(recorder.module, rng, topology, count):
                file.write(json.dumps(recorder.record(
                    {"format": 1, "file": kind, "name": scenario["name"],
                     "seed": seed, "strategy": topology, **scenario})) + "\n")


def differences(kind, lines):
    """Records scenarios again; yields (name, op before, op now) that differ."""
    with Recorder(kind) as recorder:
        for line in lines:
            before = json.loads(line)
            now = recorder.record(before)
            for old, new in zip(before["ops"], now["ops"]):
                if not same([old, new]):
                    yield before["name"], old, new
