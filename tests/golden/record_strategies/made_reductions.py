"""Scenarios of reductions: reduce, all_reduce, reduce_to, batch_reduce_to."""

REDUCE_OPS = ("SUM", "MEAN", "sum", "mean")


def over_axis(inputs):
    """axis and value of a reduce; the sums over the axis are exact."""
    rng = inputs.rng
    shape = inputs.shape((1, 2, 3), empty=not inputs.several)
    rank = len(shape)
    dtype = inputs.dtype()
    form = rng.choice(("one",) * 8 + ("several", "outside"))
    if form == "one":
        axis = rng.choice((0, rng.randrange(rank)))
        equal = inputs.plain or rng.random() < 0.4
        value = (inputs.exact_value(shape, dtype) if equal else
                 inputs.parts(shape, axis, dtype))
        return axis - rank if rng.random() < 0.3 else axis, value
    value = inputs.exact_value(shape, dtype)
    if form == "outside":
        return rng.choice((rank, -rank - 1)), value
    return sorted(rng.sample(range(rank), rng.randint(1, rank))), value


def any_reduce(inputs):
    axis, value = None, None
    if inputs.rng.random() < 0.5:
        axis, value = over_axis(inputs)
    else:
        value = inputs.any_spread(empty=not inputs.several)
    return reducing(inputs.rng.choice(REDUCE_OPS), value, axis)


def reducing(reduce_op, value, axis=None):
    return {"op": "reduce", "reduce_op": reduce_op, "axis": axis,
            "value": value}


def reduce_slices(inputs):
    if inputs.plain:
        return []
    return [reducing("SUM", inputs.slices(dtype=inputs.dtype())),
            reducing("MEAN", inputs.slices((3, 3), inputs.dtype(
                ("float32", "float64"))))]


def reduce_plain(inputs):
    """Plain values, whose sum only some strategies know."""
    plain = {"tensor": inputs.exact([2, 3])}
    zeros = {"dtype": "float32", "shape": [2], "data": [0.0, 0.0]}
    ops = [reducing(reduce_op, plain, axis) for axis in (None, 0)
           for reduce_op in ("MEAN", "SUM")]
    ops += [reducing("SUM", {"tensor": zeros}),
            reducing("SUM", {"numpy": zeros})]
    if inputs.workers > 1:
        ops.append(reducing("SUM", inputs.per_worker(inputs.exact)))
    return ops


def reduce_others(inputs):
    """An unknown operation, nested values and mirrored ones."""
    ops = [reducing(inputs.rng.choice(("median", "max")),
                    inputs.spread_value())]
    if inputs.plain:
        return ops
    if not inputs.several:
        ops.append(reducing("SUM", {"dict": {
            "a": inputs.spread_value(),
            "b": {"list": [inputs.spread_value([], "float64")]}}}))
    return ops + [reducing(reduce_op, {"mirrored": inputs.exact()})
                  for reduce_op in ("MEAN", "SUM")]


def reduce(inputs, number):
    ops = [any_reduce(inputs) for _ in range(5)]
    more = (reduce_slices, reduce_plain, reduce_others)
    if number < len(more):
        ops += more[number](inputs)
    inputs.rng.shuffle(ops)
    return {"ops": ops}


def all_reducing(reduce_op, value, graph=False):
    return {"op": "all_reduce", "reduce_op": reduce_op, "value": value,
            "graph": graph}


def any_all_reduce(inputs, graph):
    dtype = inputs.dtype()
    value = inputs.nested(lambda: inputs.spread_value(
        inputs.shape(empty=not inputs.rings), dtype))
    made = all_reducing(inputs.rng.choice(("SUM", "MEAN")), value, graph)
    if graph and inputs.rng.random() < 0.45:
        made["bytes_per_pack"] = inputs.rng.choice((1, 16, 50))
    return made


def all_reduce_slices(inputs):
    if inputs.plain:
        return []
    mixed = {"list": [inputs.spread_value(), inputs.slices(),
                      inputs.spread_value([3])]}
    return [
        all_reducing("SUM", inputs.slices()),
        all_reducing("MEAN", inputs.slices((0, 4))),
        all_reducing("SUM", mixed),
        all_reducing("SUM", inputs.slices((1, 4), "float16", dense=False))]


def all_reduce_types(inputs):
    """Values of several types at once, and a plain value."""
    pairs = [(("int32", [2]), ("float32", [2])),
             (("int32", [2]), ("int32", [3])),
             (("int64", [2]), ("float64", [2]))]
    ops = [all_reducing("SUM", {"list": [
        inputs.spread_value(shape, dtype) for dtype, shape in pair]})
        for pair in pairs]
    plain = all_reducing("SUM", {"tensor": inputs.exact()})
    plain["object_identity"] = True
    return ops + [plain, {"op": "run", "fn": "all_reduce_twice",
                          "args": [inputs.spread_value()]}]


def all_reduce_packs(inputs):
    """Types that one pack cannot have, and slices, which no pack has."""
    if inputs.plain:
        return []
    types = {"list": [inputs.spread_value([2], "float64"),
                      inputs.spread_value()]}
    slices = {"list": [inputs.spread_value(), inputs.slices()]}
    return [all_reducing("SUM", types, True),
            all_reducing("MEAN", slices, True)]


def all_reduce(inputs, number):
    graph = number >= 3
    ops = [any_all_reduce(inputs, graph) for _ in range(4)]
    more = {0: all_reduce_slices, 1: all_reduce_types, 3: all_reduce_packs}
    if number in more:
        ops += more[number](inputs)
    inputs.rng.shuffle(ops)
    return {"ops": ops}


def to_destination(reduce_op, destination, value):
    return {"op": "reduce_to", "reduce_op": reduce_op,
            "destination": destination, "value": value}


def reduce_to(inputs):
    variable = {"variable": "v"}
    ops = [to_destination(reduce_op, destination,
                          inputs.any_spread(empty=not inputs.several))
           for destination in ("value", variable, 0, inputs.each - 1)
           for reduce_op in ("SUM", inputs.rng.choice(("mean", "MEAN")))]
    ops += [to_destination("SUM", "list", inputs.spread_value()),
            to_destination("max", "value", inputs.spread_value())]
    plain = {"tensor": inputs.exact()}
    for reduce_op in ("SUM", "MEAN"):
        ops += [to_destination(reduce_op, destination, plain)
                for destination in (variable, 0)]
        if not inputs.plain:
            ops += [
                to_destination(reduce_op, variable,
                               {"mirrored": inputs.exact()}),
                to_destination(reduce_op, variable, inputs.slices()),
                to_destination(reduce_op, "value",
                               inputs.slices((0, 4), "float64"))]
    if inputs.workers > 1:
        ops.append(to_destination("SUM", variable,
                                  inputs.per_worker(inputs.exact)))
    inputs.rng.shuffle(ops)
    return {"variables": [{"name": "v", "initial": inputs.exact()}],
            "ops": ops}


def batch(reduce_op, *pairs):
    return {"op": "batch_reduce_to", "reduce_op": reduce_op,
            "pairs": [{"value": value, "destination": destination}
                      for value, destination in pairs]}


def batch_reduce_to(inputs):
    first, second = {"variable": "v"}, {"variable": "w"}
    others = ("float16", "float32", "float64", "int64")

    def value(of=others):
        return inputs.spread_value(inputs.shape(), inputs.dtype(of))

    def packed(reduce_op):
        """Two values for variables, in one pack or more."""
        of = (inputs.dtype(others),) if inputs.rng.random() < 0.8 else others
        made = batch(reduce_op, (value(of), first), (value(of), second))
        if inputs.rng.random() < 0.4:
            made["graph"] = True
        return made

    ops = []
    for reduce_op in ("SUM", "MEAN"):
        ops += [packed(reduce_op),
                batch(reduce_op, (value(), "value"), (value(), first),
                      (value(), 0)),
                batch(reduce_op, (value(("int32",)), "value"))]
    if not inputs.plain:
        ops.append(batch(
            "MEAN", (inputs.spread_value([3]), first),
            (inputs.slices((0, 4)), first),
            (inputs.spread_value([1, 2]), second)))
    ops += [batch("SUM", (inputs.spread_value([3], "int32"), "value"),
                  (inputs.spread_value([3]), destination))
            for destination in ("value", 0)]
    inputs.rng.shuffle(ops)
    return {"variables": [{"name": "v", "initial": inputs.exact([3])},
                          {"name": "w", "initial": inputs.exact([])}],
            "ops": ops}
