"""Makes scenarios of strategies and their values, with random inputs."""

from record_strategies import (made_orders, made_reductions, made_runs,
                               made_states)
from record_strategies.made_inputs import Inputs

TOPOLOGIES = [
    {"kind": kind, "workers": workers, "replicas_per_worker": each}
    for kind, sizes in (
        ("Default", [(1, 1)]),
        ("OneDevice", [(1, 1)]),
        ("Mirrored", [(1, 1), (1, 2), (1, 3), (1, 4)]),
        ("CentralStorage", [(1, 2), (1, 3)]),
        ("MultiWorkerMirrored", [(1, 2), (2, 1), (2, 2), (3, 1), (4, 1),
                                 (3, 2)]))
    for workers, each in sizes] + [
        {"kind": "MultiWorkerMirrored", "workers": 3,
         "replicas_per_worker": 1, "chief": True}]

# What a chief does differently is the order of the workers.
OF_A_CHIEF = ("run", "order_all_reduce", "gather_0", "local_results",
              "batch_reduce_to", "places")


def name_of(topology):
    name = "%s_%dx%d" % (topology["kind"], topology["workers"],
                         topology["replicas_per_worker"])
    return name + "_chief" if topology.get("chief") else name


def made(inputs):
    """Pairs of a name and a function that makes the scenario's fields."""
    yield "run", made_runs.run
    if inputs.each > 1:
        yield "run_merge_conflict", made_runs.run_merge_conflict
    yield "run_errors", made_runs.run_errors
    for i in range(5):
        yield "reduce_%d" % i, lambda x, i=i: made_reductions.reduce(x, i)
    for i in range(5):
        yield ("all_reduce_%s_%d" % ("eager" if i < 3 else "graph", i),
               lambda x, i=i: made_reductions.all_reduce(x, i))
    if inputs.count > 2:  # two numbers have one sum
        yield "order_all_reduce", made_orders.order_all_reduce
        yield "order_reduce", made_orders.order_reduce
        yield "order_packs", made_orders.order_packs
    for i in range(3):
        yield "gather_%d" % i, lambda x, i=i: made_runs.gather(x, i)
    if inputs.count > 1:
        yield "gather_bad_axis", made_runs.gather_bad_axis
    yield "merge_call", made_runs.merge_call
    yield "local_results", made_runs.local_results
    yield "reduce_to", made_reductions.reduce_to
    yield "batch_reduce_to", made_reductions.batch_reduce_to
    yield "broadcast_to", made_states.broadcast_to
    yield "update", made_states.update
    yield "update_non_slot", made_states.update_non_slot
    yield "places", made_states.places


def scenarios(rng, topology, turn):
    """The scenarios of a topology in a round, without answers."""
    inputs = Inputs(rng, topology)
    start = name_of(topology) + "/"
    end = "" if turn == 0 else "_turn_%d" % turn
    for name, make in made(inputs):
        if not topology.get("chief") or name in OF_A_CHIEF:
            yield {"name": start + name + end, **make(inputs)}
    if start == "Mirrored_1x2/":
        for name, fields in made_states.fatal(inputs):
            yield {"name": start + name + end, **fields}
