#!/usr/bin/env python3
"""Records traces from an installed TensorFlow, for lockstep_replay.

    record.py --seed 7 --count 100 --out DIRECTORY [KIND...]

writes DIRECTORY/KIND.jsonl with `count` random scenarios of each kind, one a
line. It needs TensorFlow 2.21 or one whose kernels are the same, run on a
processor with AVX; everything runs on one thread, with resource variables and
without graph rewriting, which would reorder products.

Kinds: dense_accumulator, sparse_accumulator, token_queue, optimizer,
moving_average, clip, partition, placement and sync_loop; strategy_values,
strategy_variables, strategy_input, strategy_training and run_steps, which have
`count` scenarios of every topology.

    record.py --again FILE

has TensorFlow answer the scenarios of a trace of strategies once more, and
prints the operations whose answers are not those of the file.
"""

import argparse
import contextlib
import json
import pathlib

from record_strategies import recorder
from recording import (REFUSALS, Place, Random, Waiting, number, session,
                       status_of, tensor)
from recording_placement import record_partition, record_placement
from recording_sync_loop import record_sync_loop

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
PROXIMAL = ["AdagradDA", "ProximalAdagrad", "ProximalGradientDescent"]
DTYPES = ["float32", "float32", "float64", "float16"]


def declared_shape(rng, shape):
    if rng.random() < 0.2:
        return None
    return [None if rng.random() < 0.2 else dim for dim in shape]


def record_accumulator(rng, kind, dtype):
    sparse = kind == "sparse_accumulator"
    canonical = rng.random() < 0.7
    shape = [rng.randint(3, 6), rng.randint(1, 3)] if sparse else rng.shape()
    declared = declared_shape(rng, shape)
    reduction = rng.choice(["MEAN", "SUM"])
    graph = tf.Graph()
    place = Place()
    with graph.as_default(), place.container(graph):
        make = (v1.SparseConditionalAccumulator
                if sparse else v1.ConditionalAccumulator)
        accumulator = make(dtype, shape=declared, shared_name="accumulator",
                           reduction_type=reduction)
        step = v1.placeholder(tf.int64, [])
        needed = v1.placeholder(tf.int32, [])
        values = v1.placeholder(dtype)
        indices = v1.placeholder(tf.int64)
        dense = v1.placeholder(tf.int64, [None])
        if sparse:
            with_shape = accumulator.apply_grad(indices, values, dense, step)
            without = accumulator.apply_grad(indices, values, local_step=step)
        else:
            apply = accumulator.apply_grad(values, step)
        set_step = accumulator.set_global_step(step)
        take = accumulator.take_grad(needed)
        count = accumulator.num_accumulated()

    def write(value):
        if not sparse:
            return tensor(value)
        return {"indices": [int(i) for i in value[0]],
                "values": tensor(value[1]),
                "dense_shape": [int(d) for d in value[2]]}

    ops = []
    at = 0
    with place:
        run = place.session(graph)
        waiting = Waiting("result", write, lambda: run.run(count))
        for _ in range(rng.randint(6, 14)):
            pending = waiting.pending()
            op = {"op": rng.choice(["apply"] * 6 + ["take"] * 3 +
                                   ["set_global_step"] +
                                   ["cancel"] * bool(pending))}
            if op["op"] == "apply":
                op["local_step"] = max(0, at + rng.choice([-1, 0, 0, 0, 1]))
                feed = {step: op["local_step"]}
                if sparse:
                    ids = rng.sample(range(shape[0]), rng.randint(0, shape[0]))
                    if canonical:
                        ids.sort()
                    elif ids:
                        ids.append(rng.choice(ids))
                    feed[indices] = np.array(ids, dtype=np.int64)
                    feed[values] = rng.array([len(ids)] + shape[1:], dtype,
                                             rng.scale())
                    known = rng.random() < 0.5
                    if known:
                        feed[dense] = shape
                    target = with_shape if known else without
                    op["gradient"] = {
                        "indices": ids, "values": tensor(feed[values]),
                        "dense_shape": shape if known else None}
                else:
                    wrong = rng.random() < 0.1
                    feed[values] = rng.array(shape + [2] if wrong else shape,
                                             dtype, rng.scale())
                    target = apply
                    op["gradient"] = tensor(feed[values])
                try:
                    run.run(target, feed)
                    op["status"] = "OK"
                except REFUSALS as error:
                    op["status"] = status_of(error)
            elif op["op"] == "take":
                op["n"] = rng.choice([-1, 1, 1, 2, 2, 3])
                op["id"] = waiting.begin(place.session(graph), take,
                                         {needed: op["n"]})
                op.update(waiting.answer(op["id"]))
                at += op["status"] == "OK"
            elif op["op"] == "cancel":
                op["id"] = rng.choice(pending)
                waiting.cancel(op["id"])
            else:
                op["step"] = at = max(0, at + rng.choice([-1, 0, 1]))
                run.run(set_step, {step: at})
                op["status"] = "OK"
            op["completed"] = waiting.completed(
                op["id"] if op["op"] == "cancel" else None)
            at += sum(c["status"] == "OK" for c in op["completed"])
            op["count"] = int(run.run(count))
            ops.append(op)
    return {"dtype": dtype, "shape": declared, "reduction": reduction,
            "canonical_input": canonical, "ops": ops}


def record_token_queue(rng, kind, dtype):
    graph = tf.Graph()
    place = Place()
    with graph.as_default(), place.container(graph):
        queue = v1.FIFOQueue(-1, [tf.int64], shapes=[[]],
                             shared_name="queue")
        one = v1.placeholder(tf.int64, [])
        many = v1.placeholder(tf.int64, [None])
        enqueue = queue.enqueue(one)
        enqueue_many = queue.enqueue_many(many)
        dequeue = queue.dequeue()
        close = {flag: queue.close(cancel_pending_enqueues=flag)
                 for flag in (False, True)}
        size = queue.size()
    ops = []
    with place:
        run = place.session(graph)
        waiting = Waiting("value", int, lambda: run.run(size))
        for _ in range(rng.randint(6, 16)):
            pending = waiting.pending()
            op = {"op": rng.choice(["enqueue"] * 3 + ["enqueue_many"] +
                                   ["dequeue"] * 5 + ["size", "close"] +
                                   ["cancel"] * (2 * bool(pending)))}
            target, feed = size, {}
            if op["op"] == "enqueue":
                op["value"] = rng.randint(-9, 99)
                target, feed = enqueue, {one: op["value"]}
            elif op["op"] == "enqueue_many":
                op["values"] = [rng.randint(0, 99)
                                for _ in range(rng.randint(0, 3))]
                target, feed = enqueue_many, {many: op["values"]}
            elif op["op"] == "close":
                op["cancel_pending_enqueues"] = rng.random() < 0.5
                target = close[op["cancel_pending_enqueues"]]
            if op["op"] == "dequeue":
                op["id"] = waiting.begin(place.session(graph), dequeue)
                op.update(waiting.answer(op["id"]))
            elif op["op"] == "cancel":
                op["id"] = rng.choice(pending)
                waiting.cancel(op["id"])
            else:
                try:
                    run.run(target, feed)
                    op["status"] = "OK"
                except REFUSALS as error:
                    op["status"] = status_of(error)
            op["completed"] = waiting.completed(
                op["id"] if op["op"] == "cancel" else None)
            op["size"] = int(run.run(size))
            ops.append(op)
    return {"capacity": -1, "ops": ops}


def hyper_of(rng, name):
    hyper = {"learning_rate": rng.four_digits(-4, 1)}
    if name == "Momentum":
        hyper.update(momentum=rng.choice([0.0, 0.5, 0.9, 0.99]),
                     use_nesterov=rng.random() < 0.5)
    elif name == "Adagrad":
        hyper.update(initial_accumulator_value=rng.choice([0.01, 0.1, 1.0]))
    elif name == "Adam":
        hyper.update(beta1=rng.choice([0.5, 0.9]),
                     beta2=rng.choice([0.9, 0.999]),
                     epsilon=rng.choice([1e-3, 1e-2, 1.0]))
    elif name == "RMSProp":
        hyper.update(decay=rng.choice([0.5, 0.9]),
                     momentum=rng.choice([0.0, 0.9]),
                     epsilon=rng.choice([1e-2, 1.0]),
                     centered=rng.random() < 0.5)
    elif name == "Adadelta":
        hyper.update(rho=rng.choice([0.9, 0.95]),
                     epsilon=rng.choice([1e-2, 1e-1]))
    elif name == "Ftrl":
        hyper.update(
            learning_rate_power=rng.choice([-0.5, -0.5, 0.0, -0.75, -1.0]),
            initial_accumulator_value=rng.choice([0.1, 1.0]),
            l1_regularization_strength=rng.choice([0.0, 0.05]),
            l2_regularization_strength=rng.choice([0.0, 0.5]),
            l2_shrinkage_regularization_strength=rng.choice([0.0, 0.05]),
            beta=rng.choice([0.0, 0.5]))
    elif name == "AdagradDA":
        hyper.update(
            initial_gradient_squared_accumulator_value=rng.choice([0.1, 1.0]))
    elif name == "ProximalAdagrad":
        hyper.update(initial_accumulator_value=rng.choice([0.1, 1.0]))
    if name in PROXIMAL:
        hyper.update(l1_regularization_strength=rng.choice([0.0, 0.05]),
                     l2_regularization_strength=rng.choice([0.0, 0.5]))
    return hyper


def random_gradient(rng, shape, dtype):
    """A gradient in the form of the trace, and a function that makes it for TensorFlow."""
    kind = rng.choice(["dense", "dense", "sparse", "sparse", "none"])
    if kind == "none":
        return None, None
    if kind == "dense":
        values = rng.array(shape, dtype)
        return {"dense": tensor(values)}, lambda: tf.constant(values)
    ids = [rng.randrange(shape[0]) for _ in range(rng.randint(0, shape[0]))]
    values = rng.array([len(ids)] + shape[1:], dtype)
    return ({"indices": ids, "values": tensor(values)},
            lambda: tf.IndexedSlices(tf.constant(values),
                                     tf.constant(ids, tf.int64, [len(ids)])))


def record_optimizer(rng, kind, dtype):
    names = ["GradientDescent", "Momentum", "Adagrad", "Adam", "RMSProp",
             "Adadelta", "Ftrl"]
    # TensorFlow's Python classes of these take no other types.
    name = rng.choice(names + {"float32": PROXIMAL, "float64": PROXIMAL[:1],
                               "float16": []}[dtype])
    hyper = hyper_of(rng, name)
    shapes = [rng.choice([[rng.randint(1, 20)],
                          [rng.randint(1, 5), rng.randint(1, 18)]])
              for _ in range(rng.choice([2, 3]))]
    initial = [rng.array(shape, dtype) for shape in shapes]
    graph = tf.Graph()
    with graph.as_default():
        variables = [v1.get_variable("w%d" % i, initializer=value,
                                     use_resource=True)
                     for i, value in enumerate(initial)]
        step = v1.train.get_or_create_global_step()
        more = {"global_step": step} if name == "AdagradDA" else {}
        optimizer = getattr(v1.train, name + "Optimizer")(**hyper, **more)
        trains, gradients = [], []
        for _ in range(rng.randint(2, 5)):
            pairs = [random_gradient(rng, shape, dtype) for shape in shapes]
            gradients.append([written for written, _ in pairs])
            made = [None if make is None else make() for _, make in pairs]
            try:
                trains.append(optimizer.apply_gradients(
                    list(zip(made, variables)), step))
            except REFUSALS as error:
                trains.append(error)
        slot_names = optimizer.get_slot_names()
        slots = [{key: optimizer.get_slot(variable, key) for key in slot_names
                  if optimizer.get_slot(variable, key) is not None}
                 for variable in variables]
        scalars = {"global_step": step}
        if name == "Adam":
            powers = optimizer._get_beta_accumulators()
            scalars.update(zip(["beta1_power", "beta2_power"], powers))
            if powers[0] is None:  # no variable ever got a gradient
                return record_optimizer(rng, kind, dtype)
        start = v1.global_variables_initializer()

    def state(run):
        values, slot_values, scalar_values = run.run(
            [variables, slots, scalars])
        return {"variables": [tensor(value) for value in values],
                "slots": [{key: tensor(value) for key, value in each.items()}
                          for each in slot_values],
                "scalars": {key: int(value) if key == "global_step"
                            else number(value)
                            for key, value in scalar_values.items()}}

    steps = []
    with session(graph) as run:
        run.run(start)
        first = state(run)
        for train, written in zip(trains, gradients):
            one = {"gradients": written, "status": "OK"}
            try:
                if isinstance(train, Exception):
                    raise train
                run.run(train)
            except REFUSALS as error:
                one["status"] = status_of(error)
            one["after"] = state(run)
            steps.append(one)
    return {
        "optimizer": name, "hyper": hyper, "dtype": dtype,
        "variables": [{"name": "w%d" % i, "initial": tensor(value)}
                      for i, value in enumerate(initial)],
        "status": "OK", "slot_names": slot_names,
        "slot_variables": [{key: slot.op.name for key, slot in each.items()}
                           for each in slots],
        "initial_slots": first["slots"], "initial_scalars": first["scalars"],
        "steps": steps}


def record_moving_average(rng, kind, dtype):
    decay = rng.choice([0.0, 0.25, 0.9, 0.99, 0.999])
    counted = rng.random() < 0.5
    shapes = [rng.shape() for _ in range(rng.randint(1, 3))]
    initial = [rng.array(shape, dtype, 3) for shape in shapes]
    graph = tf.Graph()
    with graph.as_default():
        updates = v1.placeholder(tf.int64, [])
        variables = [v1.get_variable("x%d" % i, initializer=value,
                                     use_resource=True)
                     for i, value in enumerate(initial)]
        new = [v1.placeholder(dtype, shape) for shape in shapes]
        assign = [v1.assign(variable, value)
                  for variable, value in zip(variables, new)]
        average = tf.train.ExponentialMovingAverage(
            decay, num_updates=updates if counted else None)
        apply = average.apply(variables)
        shadows = [average.average(variable) for variable in variables]
        start = v1.global_variables_initializer()
    steps = []
    with session(graph) as run:
        run.run(start)
        first = run.run(shadows)
        for i in range(rng.randint(2, 5)):
            values = [rng.array(shape, dtype, 3) for shape in shapes]
            run.run(assign, dict(zip(new, values)))
            run.run(apply, {updates: i + 1})
            steps.append({
                "num_updates": i + 1 if counted else None,
                "values": [tensor(value) for value in values], "status": "OK",
                "after": [{"average": tensor(x)} for x in run.run(shadows)]})
    return {
        "via": "class", "dtype": dtype, "decay": decay, "zero_debias": False,
        "use_num_updates": counted, "status": "OK",
        "entries": [{"name": "x%d" % i, "kind": "variable",
                     "shape": list(value.shape),
                     "average_name": shadows[i].op.name,
                     "initial": tensor(value)}
                    for i, value in enumerate(initial)],
        "initial_state": [{"average": tensor(x)} for x in first],
        "steps": steps}


def record_clip(rng, kind, dtype):
    graph = tf.Graph()
    entries, made = [], []
    with graph.as_default():
        for _ in range(rng.randint(1, 5)):
            written, make = random_gradient(rng, rng.shape(6), dtype)
            entries.append(written)
            made.append(None if make is None else make())
            if written is not None and "indices" in written:
                written["dense_shape"] = None
        clip = rng.four_digits(-2, 2)
        clipped, norm = tf.clip_by_global_norm(made, clip)
        alone = tf.linalg.global_norm(made)
        fetch = [x for x in clipped if x is not None]
    with session(graph) as run:
        values, norm_value, own = run.run([fetch, norm, alone])
    values = iter(values)
    results = []
    for written in entries:
        if written is None:
            results.append(None)
        elif "dense" in written:
            results.append({"dense": tensor(next(values))})
        else:
            results.append({"indices": written["indices"],
                            "values": tensor(next(values).values),
                            "dense_shape": None})
    return {"dtype": dtype, "clip_norm": clip, "use_norm": None,
            "entries": entries, "status": "OK", "norm": number(norm_value),
            "results": results,
            "global_norm": {"status": "OK", "value": number(own)}}


KINDS = {
    "dense_accumulator": record_accumulator,
    "sparse_accumulator": record_accumulator,
    "token_queue": record_token_queue,
    "optimizer": record_optimizer,
    "moving_average": record_moving_average,
    "clip": record_clip,
    "partition": record_partition,
    "placement": record_placement,
    "sync_loop": record_sync_loop,
}


STRATEGY_KINDS = ["strategy_values", "strategy_variables", "strategy_input",
                  "strategy_training", "run_steps"]


def write(kind, seed, count, file):
    """Writes `count` random scenarios of a kind to `file`, one a line."""
    rng = Random("%s %d" % (kind, seed))
    for i in range(count):
        dtype = "float32" if kind == "sync_loop" else rng.choice(DTYPES)
        scenario = None
        while scenario is None:
            # A server takes one call for another now and then.
            with contextlib.suppress(tf.errors.AbortedError):
                scenario = KINDS[kind](rng, kind, dtype)
        file.write(json.dumps({
            "format": 1, "file": kind, "name": "%s_%s_%03d" % (kind, dtype, i),
            "seed": seed, **scenario}) + "\n")


def compare(path):
    """Records the scenarios of a file again. Returns how many answers differ."""
    count = 0
    lines = path.read_text().splitlines()
    kinds = {json.loads(line)["file"] for line in lines}
    if len(kinds) != 1 or not kinds <= set(STRATEGY_KINDS):
        raise SystemExit("%s has traces of %s; --again takes one of %s" % (
            path, ", ".join(sorted(kinds)) or "nothing",
            ", ".join(STRATEGY_KINDS)))
    for name, before, now in recorder.differences(kinds.pop(), lines):
        count += 1
        print("%s\n  in the file: %s\n  now:         %s" %
              (name, json.dumps(before), json.dumps(now)))
    print("%s: %d answers differ" % (path.name, count))
    return count


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20,
                        help="scenarios of each kind")
    task = parser.add_mutually_exclusive_group(required=True)
    task.add_argument("--out", type=pathlib.Path,
                      help="directory that the files go to")
    task.add_argument("--again", type=pathlib.Path, metavar="FILE",
                      help="a trace of strategies, to be recorded again")
    parser.add_argument("kinds", nargs="*", metavar="KIND")
    arguments = parser.parse_args()
    known = list(KINDS) + STRATEGY_KINDS
    unknown = set(arguments.kinds) - set(known)
    if unknown:
        parser.error("unknown kind %s; there are %s" %
                     (", ".join(sorted(unknown)), ", ".join(known)))
    if arguments.again:
        raise SystemExit(1 if compare(arguments.again) else 0)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for kind in arguments.kinds or known:
        record = recorder.write if kind in STRATEGY_KINDS else write
        with open(arguments.out / (kind + ".jsonl"), "w") as file:
            record(kind, arguments.seed, arguments.count, file)


if __name__ == "__main__":
    main()
