"""Makes loops of several steps."""

TOPOLOGIES = [
    {"kind": "OneDevice", "workers": 1, "replicas_per_worker": 1},
    {"kind": "Mirrored", "workers": 1, "replicas_per_worker": 1},
    {"kind": "Mirrored", "workers": 1, "replicas_per_worker": 2},
    {"kind": "Mirrored", "workers": 1, "replicas_per_worker": 3},
]
SCALES = [0.5, 1.0, 2.0, -1.5, 0.1, 0.0, 3.0]


def outputs(rng, set_in, replicas):
    """Up to three outputs; without reduction only where that is allowed."""
    operators = ["SUM", "MEAN"]
    if set_in == "cross" and replicas > 1:
        operators.append(None)
    return [{"name": "o%d" % i, "scale": rng.choice(SCALES),
             "reduce_op": rng.choice(operators)}
            for i in range(rng.choice([0, 0, 1, 1, 2, 3]))]


def operation(rng, set_in, replicas):
    """Steps for which there is data, the last one perhaps not full."""
    batch = rng.choice([replicas, 2 * replicas, rng.randint(1, 13)])
    iterations = rng.choice([1, 2, 3, 4, 7])
    # The last step has data, and there may be more than all steps need.
    least = (iterations - 1) * batch + 1
    return {"op": "run_steps",
            "range": rng.choice([iterations * batch, least,
                                 rng.randint(least, least + 2 * batch)]),
            "batch": batch, "iterations": iterations, "set_in": set_in,
            "outputs": outputs(rng, set_in, replicas),
            "non_tensor": rng.random() < 0.5}


def too_little(rng, replicas):
    """Data that ends before the last step, also without any data."""
    batch = rng.choice([replicas, rng.randint(1, 9)])
    iterations = rng.randint(2, 4)
    set_in = rng.choice(["cross", "replica"])
    return {"op": "run_steps",
            "range": rng.choice([0, rng.randint(0, (iterations - 1) * batch),
                                 (iterations - 1) * batch]),
            "batch": batch, "iterations": iterations, "set_in": set_in,
            "outputs": outputs(rng, set_in, replicas),
            "non_tensor": rng.random() < 0.5}


def scenarios(rng, topology, turn):
    replicas = topology["replicas_per_worker"]
    ops = [operation(rng, set_in, replicas)
           for set_in in ["cross"] * 4 + ["replica"] * 4]
    ops.append(too_little(rng, replicas))
    batch = rng.randint(1, 5)
    none = {"op": "run_steps", "range": rng.randint(0, 9), "batch": batch}
    ops.append({**none, "iterations": 0,
                "set_in": rng.choice(["cross", "replica"]), "outputs": [],
                "non_tensor": rng.random() < 0.5})
    ops.append({**none, "range": 4 * batch, "iterations": 2,
                "set_in": "replica", "non_tensor": False,
                "outputs": [{"name": "o", "scale": rng.choice(SCALES),
                             "reduce_op": None}]})
    rng.shuffle(ops)
    yield {"name": "%s_1x%d/run_steps_%d" % (topology["kind"], replicas, turn),
           "ops": ops}
