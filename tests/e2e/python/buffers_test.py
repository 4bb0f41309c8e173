"""Buffers of a PyTorch model that are averaged over its workers."""

import unittest
import warnings

from needs import need

torch = need("torch")

import lockstep.torch
from local_job import TorchJob

# A pass makes of the buffer 0.9 of it and what is added.
MODEL = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(2))
        self.register_buffer("ema", torch.zeros(2))
    def forward(self, add):
        self.ema = 0.9 * self.ema + add
        return self.w.sum()
model = Model()
"""

JOIN = """
import lockstep.torch
worker = lockstep.torch.Worker(model)
"""


class BuffersTest(unittest.TestCase):

    def train(self, program, workers=1, steps=5, sets=()):
        """Returns the model of the program with its trained values."""
        with TorchJob(workers=workers,
                      sets=[f"train_steps={steps}", *sets]) as job:
            for i in range(workers):
                job.start_worker(i, program)
            for i in range(workers):
                self.assertEqual(job.wait("worker", i), 0,
                                 job.log("worker", i)[-2000:])
            self.assertEqual(job.wait("chief"), 0)
            space = {}
            exec(program.split(JOIN)[0], space)
            lockstep.torch.load(space["model"], job.path("checkpoints"))
            return space["model"]

    def test_a_buffer_that_its_module_replaces_is_averaged(self):
        trained = self.train(MODEL + JOIN + """
for step in worker.steps():
    step.backward(model(1 + worker.index))
""", workers=2)
        mean = 0.0
        for _ in range(5):
            mean = 0.9 * mean + 1.5
        for value in trained.ema.tolist():
            self.assertAlmostEqual(value, mean, places=5)

    def test_what_a_module_has_made_a_buffer_is_not_overwritten(self):
        trained = self.train(MODEL + JOIN + """
data = torch.arange(10.0)
for step in worker.steps():
    model.ema = data[2 * (step.number % 5):][:2]
    step.backward(model.w.sum())
assert torch.equal(data, torch.arange(10.0)), data
""")
        self.assertEqual(trained.ema.tolist(), [8, 9])

    def test_a_buffer_that_was_expanded_is_averaged(self):
        expanded = MODEL.replace("torch.zeros(2)", "torch.zeros(1).expand(2)")
        trained = self.train(expanded + JOIN + """
for step in worker.steps():
    model.ema.add_(torch.tensor([1.0, 2.0]))
    step.backward(model.w.sum())
""")
        self.assertEqual(trained.ema.tolist(), [5, 10])

    def test_a_worker_that_comes_back_divides_by_the_batches_of_all(self):
        # A cumulative average: the weight of a batch is 1 / num_batches_tracked.
        program = """
import torch
def make():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.BatchNorm1d(2, momentum=None),
                               torch.nn.BatchNorm1d(2), torch.nn.Linear(2, 1))
model = make()
""" + JOIN + """
x = torch.randn(80, 2, generator=torch.Generator().manual_seed(1))
def train(last):
    for step in worker.steps():
        rows = 8 * step.number + torch.arange(8) if step.number < 9 else [0, 1]
        step.backward(model(x[rows]).mean())
        if step.number == last:
            return
train(LAST)
if LAST:
    worker.close()
    model = make()
    worker = lockstep.torch.Worker(model)
    train(None)
"""
        trained = [self.train(f"LAST = {last}\n" + program, steps=9)
                   for last in (None, 4)]
        for model in trained:
            mean = torch.randn(80, 2, generator=torch.Generator(
                ).manual_seed(1))[:72].mean(0)
            self.assertLess(
                float((model[0].running_mean - mean).abs().max()), 1e-6)
            self.assertEqual(int(model[0].num_batches_tracked), 9)
            # It divides nothing.
            self.assertEqual(int(model[1].num_batches_tracked), 0)

    def test_a_buffer_of_another_shape_or_dtype_is_refused(self):
        for change in ("model.ema = torch.ones(3)", "model.ema = None",
                       "model.double()"):
            with self.subTest(change), TorchJob() as job:
                job.start_worker(0, MODEL + JOIN + f"""
for step in worker.steps():
    loss = model(1)
    {change}
    step.backward(loss)
""")
                self.assertEqual(job.wait("worker"), 1)
                self.assertIn('RuntimeError: buffer "ema" is', job.log("worker"))
                self.assertIn("shape (2,) when the Worker was made",
                              job.log("worker"))

    def test_a_change_that_its_difference_cannot_hold_is_refused(self):
        for dtype, first, then, text in (
                ("float32", "torch.finfo(torch.float32).max", "1.5",
                 "3.40282e+38 to 1.5"),
                ("float16", "-torch.inf", "0.5", "-inf to 0.5"),
                ("float64", "torch.nan", "2", "nan to 2")):
            with self.subTest(first), TorchJob() as job:
                job.start_worker(0, MODEL + f"""
model.register_buffer("low", torch.full((), {first}, dtype=torch.{dtype}))
""" + JOIN + f"""
for step in worker.steps():
    model.low.fill_({then})
    step.backward(model(1))
""")
                self.assertEqual(job.wait("worker"), 1)
                self.assertIn(f'RuntimeError: buffer "low" was changed from '
                              f"{text}: ", job.log("worker"))

    def test_counts_and_averages_may_change_by_orders_of_magnitude(self):
        trained = self.train(MODEL + """
model.register_buffer("count", torch.tensor([1e9, -1000.0, 0.0, 0.3]))
model.register_buffer("low", torch.tensor([250.0, 20.0]).bfloat16())
""" + JOIN + """
for step in worker.steps():
    model.count.copy_(torch.tensor([0.0, 1e-6, 1e30, 1e-30]))
    model.low.copy_(torch.tensor([60.25, 0.01]))
    step.backward(model(1))
""", steps=1)
        self.assertEqual(trained.count[[0, 2]].tolist(),
                         torch.tensor([0, 1e30]).tolist())
        self.assertLess(float(trained.count[[1, 3]].abs().max()), 1e-4)

    def test_a_complex_buffer_that_passes_change_is_told_once(self):
        program = MODEL + """
model.register_buffer("turns", torch.ones(2, dtype=torch.cfloat))
model.register_buffer("sums", torch.ones(2, dtype=torch.cfloat))
""" + JOIN + """
for step in worker.steps():
    CHANGE
    step.backward(model(1))
"""
        told = 'RuntimeWarning: buffer "sums" is of torch.complex64, and a pass'
        for change, joins, times in (
                ("model.sums += 1j", JOIN, 1),
                ("model.sums = 1j * model.sums", JOIN, 1), ("pass", JOIN, 0),
                ("model.sums += 1j", JOIN.replace("l)", 'l, "local")'), 0)):
            with TorchJob(sets=["train_steps=3"]) as job:
                job.start_worker(0, program.replace("CHANGE", change).replace(
                    JOIN, joins))
                self.assertEqual(job.wait("worker"), 0, job.log("worker"))
                log = job.log("worker")
                self.assertEqual(log.count(told), times, log)
                self.assertEqual(log.count("RuntimeWarning"), times, log)

    def test_a_checkpoint_without_the_buffers_of_a_model_is_told(self):
        local = JOIN.replace("(model)", '(model, buffers="local")')
        with TorchJob(sets=["train_steps=2"]) as job:
            job.start_worker(0, MODEL + local + """
for step in worker.steps():
    step.backward(model(1))
""")
            self.assertEqual(job.wait("worker"), 0, job.log("worker"))
            self.assertEqual(job.wait("chief"), 0)
            space = {}
            exec(MODEL, space)
            with self.assertWarnsRegex(RuntimeWarning, 'step 2 has no "ema"'):
                lockstep.torch.load(space["model"], job.path("checkpoints"))
            self.assertEqual(space["model"].ema.tolist(), [0, 0])
            del space["model"].ema
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                lockstep.torch.load(space["model"], job.path("checkpoints"))

    def test_buffers_may_become_infinite_in_a_job_that_allows_it(self):
        trained = self.train(MODEL + JOIN + """
for step in worker.steps():
    model.ema.copy_(torch.tensor([torch.inf, torch.nan]))
    step.backward(model.w.sum())
""", sets=["refuse_non_finite=false"])
        self.assertEqual(repr(trained.ema.tolist()), "[inf, nan]")

    def test_infinities_keep_their_bits(self):
        program = MODEL + """
model.register_buffer("mask", torch.full((4, 4), -torch.inf).triu(1))
model.register_buffer("unset", torch.full((3,), torch.nan))
model.register_buffer("low", torch.tensor([torch.inf, 1]).half())
model.register_buffer("scalar", torch.tensor(-torch.inf))
""" + JOIN + """
for step in worker.steps():
    model.low[1] += 1
    step.backward(model(1))
"""
        trained = self.train(program, steps=3)
        space = {}
        exec(program.split(JOIN)[0], space)
        self.assertEqual(trained.low.tolist(), [torch.inf, 4])
        for key, buffer in space["model"].named_buffers():
            if key not in ("ema", "low"):
                self.assertEqual(
                    buffer.numpy().tobytes(),
                    trained.get_buffer(key).numpy().tobytes(), key)


if __name__ == "__main__":
    unittest.main(verbosity=2)
