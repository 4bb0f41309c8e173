"""Random inputs for operations of strategies, in the form of the trace."""

import numpy as np

from record_strategies.forms import tensor

DTYPES = ("float16", "float32", "float64", "int32", "int64")
FLOATS = DTYPES[:3]
SPECIAL = (float("nan"), float("inf"), -float("inf"), 0.0, -0.0)
DECADES = {"float16": 1.5, "float32": 3, "float64": 3}  # on each side of 1
# No float16 becomes subnormal: a difference is a multiple of the grid, which
# is the smallest normal number, and the quotient of a number is normal.
GRID = {"float16": 2.0 ** -14}
SMALLEST = {"float16": 4e-4, "float32": 0, "float64": 0}
LARGEST = {"int32": 1000, "int64": 2 ** 40}
# Large enough that 1 is lost beside it.
HUGE = {"float16": 4096.0, "float32": 1e8, "float64": 1e17}


class Inputs:
    """Random tensors, slices and values for one topology.

    Some numbers are exact, that is small integers whose sums do not round;
    others are spread over magnitudes, so that a sum shows its order.
    """

    def __init__(self, rng, topology):
        self.rng = rng
        self.kind = topology["kind"]
        self.workers = topology["workers"]
        self.each = topology["replicas_per_worker"]
        self.count = self.workers * self.each
        self.plain = self.kind in ("Default", "OneDevice")
        self.central = self.kind == "CentralStorage"
        self.several = self.kind == "MultiWorkerMirrored"
        # A ring takes no empty tensors.
        self.rings = not (self.plain or self.central)

    def dtype(self, of=DTYPES):
        return self.rng.choice(of)

    def shape(self, ranks=(0, 1, 1, 2, 2, 3), empty=False):
        dims = (1, 2, 3, 5) * 2 + ((0,) if empty else ())
        return [self.rng.choice(dims) for _ in range(self.rng.choice(ranks))]

    def _leaf(self, shape, dtype, draw):
        count = int(np.prod(shape, dtype=int))
        return tensor(np.array([draw(dtype) for _ in range(count)])
                      .astype(dtype).reshape(shape))

    def exact(self, shape=(2,), dtype="float32"):
        return self._leaf(shape, dtype, lambda _: self.rng.randint(-9, 9))

    def spread(self, shape=(2,), dtype="float32"):
        return self._leaf(shape, dtype, self._spread_number)

    def _spread_number(self, dtype):
        if dtype in LARGEST:
            return self.rng.randint(-LARGEST[dtype], LARGEST[dtype])
        if self.rng.random() < 0.02:
            return self.rng.choice(SPECIAL)
        while True:
            decades = DECADES[dtype]
            drawn = (self.rng.gauss(0, 1) *
                     10.0 ** self.rng.uniform(-decades, decades))
            if dtype in GRID:
                drawn = round(drawn / GRID[dtype]) * GRID[dtype]
            if abs(drawn) >= SMALLEST[dtype]:
                return drawn

    def ordered(self, size, dtype):
        """A leaf for every replica whose sum depends on the order.

        Each element has huge numbers that cancel, and small ones that are
        lost beside them, in a random order of the replicas.
        """
        pool = [HUGE[dtype], -HUGE[dtype], 1.0, 3.0, -1.0, 0.5]
        columns = []
        for _ in range(size):
            small = self.rng.sample(pool[2:], self.count - 2)
            columns.append(self.rng.sample(pool[:2] + small, self.count))
        rows = np.array(columns).astype(dtype).T
        return {"per_replica": [tensor(row) for row in rows]}

    def value(self, make):
        """A value with a component made for every replica."""
        if self.plain:
            return {"tensor": make()}
        return {"per_replica": [make() for _ in range(self.count)]}

    def exact_value(self, shape=(2,), dtype="float32"):
        return self.value(lambda: self.exact(shape, dtype))

    def spread_value(self, shape=(2,), dtype="float32"):
        return self.value(lambda: self.spread(shape, dtype))

    def any_exact(self, **shape):
        """An exact value of any type and shape."""
        return self.exact_value(self.shape(**shape), self.dtype())

    def any_spread(self, **shape):
        return self.spread_value(self.shape(**shape), self.dtype())

    def plain_exact(self):
        return {"tensor": self.exact(self.shape(), self.dtype())}

    def nested(self, leaf):
        """A value made by leaf(), or a list or dict of some."""
        form = self.rng.choice(("leaf", "leaf", "list", "dict", "dict"))
        if form == "leaf":
            return leaf()
        if form == "list":
            return {"list": [leaf() for _ in range(self.rng.randint(1, 3))]}
        first = self.rng.choice(("a", "c"))  # keys need not come sorted
        return {"dict": {first: leaf(), "b": {"tuple": [leaf(), leaf()]}}}

    def slices(self, rows=(2, 2), dtype="float32", dense=True):
        """Slices with a random number of rows for every replica.

        One replica at least has a row, for an empty tensor is not gathered.
        """
        depth = self.rng.randint(4, 7)
        inner = self.rng.choice(([], [2], [2], [3]))
        numbers = [self.rng.randint(*rows) for _ in range(self.count)]
        if not any(numbers):
            numbers[self.rng.randrange(self.count)] = 1
        return {"per_replica": [
            {"indices": [self.rng.randrange(depth) for _ in range(number)],
             "values": self.spread([number] + inner, dtype),
             "dense_shape": [depth] + inner if dense else None}
            for number in numbers]}

    def parts(self, shape, axis, dtype):
        """A value whose components have different sizes along an axis."""
        sizes = [self.rng.randint(0, 4) for _ in range(self.count)]
        if not any(sizes):
            sizes[self.rng.randrange(self.count)] = 1
        sizes = iter(sizes)
        return self.value(lambda: self.exact(
            shape[:axis] + [next(sizes)] + shape[axis + 1:], dtype))

    def per_worker(self, make):
        return {"per_worker": [make() for _ in range(self.workers)]}
