"""Scenarios of variables: updates, places, broadcasts, and fatal ones."""

from record_strategies.made_inputs import FLOATS


def update(inputs):
    rng = inputs.rng
    shape = rng.choice(([2], [2], [3], [5], [2, 2], [1, 3], [2, 1, 3]))
    dtype = inputs.dtype(FLOATS)

    def exact():
        return inputs.exact(shape, dtype)

    def updating(op, fn, group, *args):
        return {"op": op, "variable": "v", "fn": fn, "args": list(args),
                "group": group}

    number = {"python": rng.choice((1.5, -2.5, 3.0))}
    ops = [updating("update", "assign_add", True, number)]
    for group in (True, False):
        ops += [updating("update", fn, group, {"tensor": exact()})
                for fn in ("assign", "assign_add", "assign_sub", "nothing")]
        ops.append(updating("update", "scale_add", group,
                            {"tensor": exact()},
                            {"tensor": inputs.spread(shape, dtype)}))
        if not inputs.plain:
            ops += [updating("update", "assign_add", group, value)
                    for value in ({"mirrored": exact()},
                                  inputs.exact_value(shape, dtype))]
    if not inputs.plain:
        ops += [updating("update_in_replica", "assign_add", True, number),
                updating("update_in_replica", "assign_add", False,
                         inputs.exact_value(shape, dtype))]
    rng.shuffle(ops)
    return {"variables": [{"name": "v", "initial": exact()}], "ops": ops}


def update_non_slot(inputs):
    ops = []
    for group in (True, False):
        shape, dtype = inputs.shape(), inputs.dtype()
        calls = [("double", [{"tensor": inputs.exact(shape, dtype)}])]
        if not inputs.plain and not inputs.central:
            calls += [("add", [{"mirrored": inputs.exact(shape, dtype)},
                               {"tensor": inputs.exact(shape, dtype)}]),
                      ("double", [inputs.exact_value(shape, dtype)])]
        ops += [{"op": "update_non_slot", "variables": ["w", "v"], "fn": fn,
                 "args": args, "group": group} for fn, args in calls]
    inputs.rng.shuffle(ops)
    return {"variables": [{"name": "v", "initial": inputs.exact()},
                          {"name": "w", "initial": inputs.exact([])}],
            "ops": ops}


def broadcast_to(inputs):
    variable = {"variable": "v"}
    cases = [(variable, inputs.plain_exact()), (0, inputs.plain_exact()),
             (variable, {"python": inputs.rng.randint(-9, 9) * 0.5}),
             ("list", {"tensor": inputs.exact()})]
    if inputs.workers > 1:
        cases.append((variable, inputs.per_worker(inputs.exact)))
    inputs.rng.shuffle(cases)
    return {"variables": [{"name": "v", "initial": inputs.exact()}],
            "ops": [{"op": "broadcast_to", "destination": destination,
                     "value": value} for destination, value in cases]}


def places(inputs):
    """Where values and variables are, and whose; the order matters."""
    ops = [{"op": "devices"},
           {"op": "non_slot_devices", "variables": ["w", "v"]},
           {"op": "colocate", "variable": "slot", "with": "v"},
           {"op": "colocate_foreign"},
           {"op": "colocate_no_scope", "with": "v"}]
    ops += [{"op": op, "variable": name} for op, names in (
        ("created_in_scope", ("v", "slot", "outside")),
        ("value_container", ("v", "r")), ("names", ("v", "r")))
        for name in names]
    ops.append({"op": "contexts", "variable": "v"})
    if inputs.kind != "Default":
        value = inputs.exact_value([])
        cases = [("scope", value), ("reduce", value), ("run", value),
                 ("update", {"tensor": inputs.exact([])}),
                 ("variable", {"tensor": inputs.exact([])})]
        inputs.rng.shuffle(cases)
        ops += [{"op": "scope_of_another", "what": what, "variable": "v",
                 "value": value} for what, value in cases]
    variables = [
        {"name": "w", "initial": inputs.exact()},
        {"name": "v", "initial": inputs.exact([])},
        {"name": "r", "initial": inputs.exact([]),
         "synchronization": "ON_READ", "aggregation": "SUM"},
        {"name": "slot", "initial": inputs.exact(), "colocate_with": "v"}]
    return {"variables": variables, "ops": ops}


def fatal(inputs):
    """Shapes that differ where the replicas meet, by name of the scenario.

    The second operation shows whether later collectives work.
    """
    def value(*shapes):
        return {"per_replica": [inputs.exact(list(shape))
                                for shape in shapes]}

    first, second = inputs.rng.sample(range(2, 6), 2)
    flat = value([first], [second])
    rows, wide, wider = inputs.rng.randint(1, 3), first, second
    summed = {"reduce_op": "SUM", "value": flat}
    cases = {
        "all_reduce_shapes": {"op": "all_reduce", "graph": False, **summed},
        "reduce_shapes": {"op": "reduce", "axis": None, **summed},
        "reduce_mean_shapes": {"op": "reduce", "axis": None,
                               "reduce_op": "MEAN", "value": flat},
        "gather_dims": {"op": "gather", "axis": 0,
                        "value": value([rows, wide], [rows, wider])},
        "gather_ranks": {"op": "gather", "axis": 0,
                         "value": value([rows], [rows, wide])}}
    for name, op in cases.items():
        yield "fatal_" + name, {"fatal": True, "ops": [op, {
            "op": "all_reduce", "reduce_op": "SUM", "graph": False,
            "value": inputs.exact_value()}]}
