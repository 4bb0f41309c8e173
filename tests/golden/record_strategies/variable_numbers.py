"""Random tensors and rows for variables."""

import numpy as np

from record_strategies.forms import tensor

SPECIAL = (float("nan"), float("inf"), float("-inf"), -0.0)
# Products of the factors stay far from the ends of every type.
FACTORS = (-1, 1, 2, 3)
EXACT_FACTORS = FACTORS + (0.5, -1.25)


def tensor_of(numbers, dtype, shape):
    return tensor(np.array(numbers).astype(dtype).reshape(shape))


def size_of(shape):
    return int(np.prod(shape, dtype=int))


def random_shape(rng, dtype, topology):
    """A shape; now and then one that a ring cuts into several chunks.

    A chunk has at least 64 bytes. Sums show the chunks only where three
    replicas or more are in a ring.
    """
    count = topology["workers"] * topology["replicas_per_worker"]
    rings = (topology["kind"] == "MultiWorkerMirrored" and count > 2
             and dtype.startswith("float"))
    if rng.random() < (0.25 if rings else 0.03):
        chunk = 64 // np.dtype(dtype).itemsize
        return [rng.randint(chunk + 1, 3 * chunk)]
    return [rng.randint(1, 3) for _ in range(rng.choice([0, 1, 1, 2, 2, 3]))]


def small(rng, dtype, shape):
    return tensor_of([rng.randint(-9, 9) for _ in range(size_of(shape))],
                     dtype, shape)


def wild_number(rng, dtype):
    """A number with many digits; sums of float16 do not become subnormal."""
    if dtype == "int32":
        return rng.randint(-1000, 1000)
    if dtype == "int64":
        return rng.randint(-10 ** 12, 10 ** 12)
    if rng.random() < 0.02:
        return rng.choice(SPECIAL)
    if dtype == "float16":
        return round(rng.gauss(0, 1) * 10 ** rng.uniform(-1, 1.5) * 4096) / 4096
    return rng.gauss(0, 1) * 10 ** rng.uniform(-3, 3)


def wild(rng, dtype, shape):
    return tensor_of([wild_number(rng, dtype) for _ in range(size_of(shape))],
                     dtype, shape)


def leaf(rng, dtype, shape):
    return (wild if rng.random() < 0.3 else small)(rng, dtype, shape)


def slices(rng, dtype, shape, method, index_dtype):
    """Rows for a scatter, of which some may be the same row."""
    rows = rng.choice([1, 1, 2, 3])
    inner = [rows] + shape[1:]
    if method in ("scatter_mul", "scatter_div"):
        factors = EXACT_FACTORS if dtype.startswith("float") else FACTORS
        values = tensor_of([rng.choice(factors)
                            for _ in range(size_of(inner))], dtype, inner)
    else:
        values = leaf(rng, dtype, inner)
    return {"indices": [rng.randrange(shape[0]) for _ in range(rows)],
            "index_dtype": index_dtype, "values": values,
            "dense_shape": shape}
