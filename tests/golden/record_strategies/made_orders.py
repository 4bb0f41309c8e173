"""Scenarios whose sums show the order of the additions."""

import numpy as np

from record_strategies.made_inputs import FLOATS
from record_strategies.made_reductions import (all_reducing, batch, reducing,
                                               to_destination)

CACHE_LINE = 64  # bytes, which chunks of a ring are multiples of


def ring_size(inputs, dtype):
    """A number of elements, often beside one where a chunk ends."""
    rng = inputs.rng
    if rng.random() < 0.4:
        return rng.randint(1, 130)
    line = CACHE_LINE // np.dtype(dtype).itemsize
    border = line * rng.choice((1, inputs.count, rng.randint(2, 6)))
    return border + rng.choice((-1, 0, 1))


def order_all_reduce(inputs):
    ops = []
    for dtype, count in zip(FLOATS, (2, 4, 2)):
        for reduce_op in ["SUM"] * count + ["MEAN"]:
            size = ring_size(inputs, dtype)
            ops.append(all_reducing(reduce_op, inputs.ordered(size, dtype)))
    inputs.rng.shuffle(ops)
    return {"ops": ops}


def order_packs(inputs):
    rng = inputs.rng
    limits = [None, 1] + [rng.choice((30, 64, 100, 200)) for _ in range(3)]
    rng.shuffle(limits)
    ops = []
    for limit in limits:
        dtype = inputs.dtype(FLOATS)
        made = all_reducing(rng.choice(("SUM", "SUM", "MEAN")), {"list": [
            inputs.ordered(rng.choice((1, rng.randint(2, 24))), dtype)
            for _ in range(rng.randint(2, 4))]}, True)
        if limit is not None:
            made["bytes_per_pack"] = limit
        ops.append(made)
    return {"ops": ops}


def order_reduce(inputs):
    """Every reduction but all_reduce, in every type."""
    rng = inputs.rng
    ops = []
    for dtype in FLOATS:
        def value():
            return inputs.ordered(rng.choice((1, rng.randint(2, 40))), dtype)

        for _ in range(2):
            ops += [reducing(rng.choice(("SUM", "MEAN")), value()),
                    to_destination("SUM", "value", value()),
                    to_destination("SUM", 0, value())]
        packed = batch("SUM", *[(value(), "value")
                                for _ in range(rng.randint(2, 4))])
        packed["graph"] = True
        ops += [batch("SUM", (value(), "value"), (value(), "value")), packed,
                batch("SUM", (value(), 0), (value(), "value"))]
    rng.shuffle(ops)
    return {"ops": ops}
