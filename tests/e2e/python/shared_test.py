"""Programs in a job with shared steps: neither the number of workers nor the
death of one changes a bit, and the steps are those of a plain loop."""

import unittest

import numpy as np

from lockstep import checkpoint
from shared_job import BATCH, NUMBERS, STEPS, train

# A network of two layers that drops inputs out, and its data; both sides run
# these lines.
COMMON = """
import numpy as np

rng = np.random.default_rng(3)
x = rng.standard_normal((240, 6))
y = np.sin(x.sum(axis=1))
first = {"in": rng.standard_normal((6, 5)) * 0.3, "bias": np.zeros(5),
         "out": rng.standard_normal(5) * 0.3}

def masks(seed, rows):
    return np.random.default_rng(seed).random((rows, 6)) < 0.8

def gradients(values, x, y):
    values = {name: np.asarray(v, np.float64) for name, v in values.items()}
    hidden = np.tanh(x @ values["in"] + values["bias"])
    error = hidden @ values["out"] - y
    inner = 2 / len(y) * np.outer(error, values["out"]) * (1 - hidden ** 2)
    return {"out": 2 / len(y) * hidden.T @ error, "in": x.T @ inner,
            "bias": inner.sum(axis=0)}
"""

WORKER = COMMON + """
import lockstep

worker = lockstep.Worker({name: v.astype(np.float32)
                          for name, v in first.items()})
for step in worker.steps():
    rows = step.indices(len(x))
    tell(step, rows)
    step.push(gradients(step.values, x[rows] * masks(step.seed, len(rows)),
                        y[rows]))
"""

RATE = 0.1


def plain_loop(passes):
    """The values of a loop over whole batches, which consist of the passes."""
    space = {}
    exec(COMMON, space)
    x, y, values = space["x"], space["y"], dict(space["first"])
    for number in range(STEPS):
        inputs, targets = [], []
        for share in range(NUMBERS):
            seed, *rows = passes[number, share]
            inputs.append(x[rows] * space["masks"](seed, len(rows)))
            targets.append(y[rows])
        gradients = space["gradients"](values, np.concatenate(inputs),
                                       np.concatenate(targets))
        for name in values:
            values[name] = values[name] - RATE * gradients[name]
    return values


def values_of(checkpoints):
    _, tensors = checkpoint.read(checkpoints)
    return {name: checkpoint.array(*tensor).copy()
            for name, tensor in tensors.items()}


class SharedTest(unittest.TestCase):

    def train(self, workers, **options):
        return train(self, WORKER, workers, [f"learning_rate={RATE}"],
                     **options)

    def test_one_two_and_three_workers_end_with_the_bits_of_each_other(self):
        alone, passes, values = self.train(1, read=values_of)
        for workers in (2, 3):
            files, others, _ = self.train(workers)
            self.assertEqual(files, alone, workers)
            self.assertEqual(others, passes, workers)
        for name, value in plain_loop(passes).items():
            self.assertGreater(abs(value).max(), 0.01, name)
            np.testing.assert_allclose(values[name], value, rtol=0, atol=1e-6,
                                       err_msg=name)

    def test_the_share_is_the_number_of_the_micro_batch(self):
        _, passes, _ = self.train(2)
        self.assertEqual(set(passes), {(number, share)
                                       for number in range(STEPS)
                                       for share in range(NUMBERS)})
        self.assertEqual(len({seed for seed, *_ in passes.values()}),
                         STEPS * NUMBERS)
        for number in range(STEPS):
            rows = [row for share in range(NUMBERS)
                    for row in passes[number, share][1:]]
            self.assertEqual(len(rows), BATCH)
            self.assertEqual(len(set(rows)), BATCH, number)

    def test_a_killed_worker_changes_no_bit(self):
        alone, passes, _ = self.train(1)
        for workers in (1, 3):
            files, others, _ = self.train(workers, kills=workers // 2)
            self.assertEqual(files, alone, workers)
            self.assertEqual(others, passes, workers)


if __name__ == "__main__":
    unittest.main(verbosity=2)
