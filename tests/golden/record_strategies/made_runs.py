"""Scenarios of functions that run on the replicas, without reductions."""


def run(inputs):
    """run of functions with each form of argument."""
    rng = inputs.rng
    shared = {"tensor": inputs.exact()}
    dtype, shape = inputs.dtype(), inputs.shape()
    spread = inputs.spread_value(shape, dtype)
    more = {"tensor": inputs.exact(shape, dtype)}
    nested = {"dict": {"a": spread, "b": {"list": [
        spread, {"tuple": [shared, spread]}]}}}
    calls = [("id_and_count", [])]
    calls += [(fn, [inputs.any_exact(empty=True)]) for fn in
              ("double", "identity", "add_id", "structure", "none")]
    calls += [(fn, [shared]) for fn in ("double", "identity", "add_id")]
    calls += [("double", [{"python": rng.randint(-9, 9) * 0.5}]),
              ("identity", [{"python": rng.choice(("text", "more", ""))}]),
              ("identity", [nested]),
              ("double", [{"variable": "v"}]),
              ("identity", [{"variable": "v"}])]
    if not inputs.plain:
        calls += [(fn, [{"mirrored": inputs.exact(inputs.shape(),
                                                  inputs.dtype())}])
                  for fn in ("double", "identity")]
    ops = [{"op": "run", "fn": fn, "args": args} for fn, args in calls]
    ops += [{"op": "run", "fn": "add", "args": [spread],
             "kwargs": {"dict": {"y": more}}},
            {"op": "run_bad_args", "args": {"tensor": inputs.exact()}}]
    rng.shuffle(ops)
    return {"variables": [{"name": "v", "initial": inputs.exact()}],
            "ops": ops}


def run_merge_conflict(inputs):
    """Replicas whose results have different structures."""
    value = inputs.spread_value()
    return {"ops": [{"op": "run", "fn": fn, "args": [value]}
                    for fn in ("lengths_differ", "keys_differ")]}


def run_errors(inputs):
    """Functions that raise, and a last one that shows that all is well."""
    value = inputs.spread_value()
    functions = ["raise_in_merge", "raise_in_merge_in_run_in_merge",
                 "merge_wrong_context", "run_in_replica",
                 "scope_in_replica", "reduce_in_replica",
                 "gather_in_replica"]
    if inputs.workers == 1:
        # Each worker has a last replica, and another worker has no error.
        functions += ["raise_in_last", "raise_in_run_in_merge"]
    inputs.rng.shuffle(functions)
    return {"ops": [{"op": "run", "fn": fn, "args": [value]}
                    for fn in functions + ["double"]]}


def merge_call(inputs):
    values = [(fn, inputs.any_exact())
              for fn in ("sum_locals", "pass", "reduce_sum", "reduce_mean",
                         "structure", "nested_run", "none", "kind")]
    if not inputs.plain:
        values += [("kind", {"mirrored": inputs.exact()}),
                   ("kind", {"python": 3.0}),
                   ("kind", {"tensor": inputs.exact()})]
    inputs.rng.shuffle(values)
    return {"ops": [{"op": "merge_call", "fn": fn, "value": value}
                    for fn, value in values]}


def local_results(inputs):
    """local_results of every form, and distribute_values."""
    rng = inputs.rng
    value = inputs.any_spread()
    values = [value, inputs.plain_exact(),
              {"python": rng.randint(-9, 9)},
              {"dict": {"a": value, "b": {"list": [
                  {"python": rng.randint(-9, 9)}, value]}}}]
    if not inputs.plain:
        values.append({"mirrored": inputs.exact(inputs.shape(),
                                                inputs.dtype())})
    ops = [{"op": "local_results", "value": value} for value in values]
    for fn in ("id", "count", "fraction", "table", "constant", "nested"):
        made = {"op": "distribute_values", "fn": fn}
        if fn in ("table", "constant", "nested"):
            shape, dtype = inputs.shape(), inputs.dtype()
            made["table"] = [
                inputs.spread(shape, dtype)
                for _ in range(1 if fn == "constant" else inputs.count)]
        ops.append(made)
    rng.shuffle(ops)
    return {"ops": ops}


def gathered(inputs):
    """One gather or all_gather, of parts of different sizes now and then."""
    rng = inputs.rng
    shape = inputs.shape((1, 1, 2, 2, 3), empty=not inputs.rings)
    axis = rng.randrange(len(shape))
    dtype = inputs.dtype()
    if not inputs.plain and rng.random() < 0.6:
        value = inputs.parts(shape, axis, dtype)
    else:
        value = inputs.exact_value(shape, dtype)
    if rng.random() < 0.5:
        return {"op": "gather", "axis": axis, "value": value}
    return {"op": "all_gather", "axis": axis, "value": value,
            "graph": rng.random() < 0.4}


def gather(inputs, number):
    ops = [gathered(inputs) for _ in range(4)]
    if number > 0:
        return {"ops": ops}
    ops.append({"op": "gather", "axis": 0,
                "value": {"tensor": inputs.exact()}})
    if not inputs.plain:
        ops.append({"op": "gather", "axis": 0, "value": inputs.slices()})
    sizes = iter([i % 3 for i in range(inputs.count)])
    ops.append({"op": "all_gather", "axis": 0, "graph": False,
                "value": {"list": [
                    inputs.value(lambda: inputs.exact([next(sizes), 2])),
                    inputs.exact_value([1])]}})
    inputs.rng.shuffle(ops)
    return {"ops": ops}


def gather_bad_axis(inputs):
    cases = [(0, []), (1, [2]), (-1, [2, 1]), (0, [2, 1])]
    inputs.rng.shuffle(cases)
    return {"ops": [{"op": "gather", "axis": axis,
                     "value": inputs.exact_value(shape)}
                    for axis, shape in cases]}
