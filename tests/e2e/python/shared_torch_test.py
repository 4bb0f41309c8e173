"""lockstep.torch in a job with shared steps: neither the number of workers nor
the death of one changes a bit, and the steps are those of PyTorch alone."""

import unittest

from needs import need

torch = need("torch")

import lockstep.torch
from local_job import TorchJob
from shared_job import NUMBERS, STEPS, train

COMMON = """
import torch
torch.set_num_threads(1)
torch.manual_seed(0)
generator = torch.Generator().manual_seed(1)
x = torch.randn(240, 8, generator=generator)
y = torch.randint(0, 4, (240,), generator=generator)
loss_of = torch.nn.functional.cross_entropy
"""

PLAIN = COMMON + """
model = torch.nn.Sequential(
    torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 4))
"""

# Running means, and random numbers of the passes.
NORMALISED = COMMON + """
model = torch.nn.Sequential(
    torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.ReLU(),
    torch.nn.Dropout(0.2), torch.nn.Linear(16, 4))
"""

LOOP = """
import lockstep.torch
worker = lockstep.torch.Worker(model)
for step in worker.steps():
    torch.manual_seed(step.seed % 2 ** 63)
    rows = step.indices(len(x))
    tell(step, rows.tolist())
    step.backward(loss_of(model(x[rows]), y[rows]))
"""


class SharedTorchTest(unittest.TestCase):

    def check_bits(self, program, sets):
        alone, passes, _ = train(self, program, 1, sets, job_class=TorchJob)
        for workers, kills in ((2, None), (3, None), (3, 1)):
            files, others, _ = train(self, program, workers, sets, kills,
                                     job_class=TorchJob)
            self.assertEqual(files, alone, (workers, kills))
            self.assertEqual(others, passes, (workers, kills))

    def test_normalisation_and_dropout_have_the_same_bits_on_any_workers(self):
        self.check_bits(NORMALISED + LOOP,
                        ["learning_rate=0.01", "optimizer.kind=ADAMW"])

    def test_steps_equal_those_of_one_process_on_the_whole_batch(self):
        def read(checkpoints):
            trained = {}
            exec(PLAIN, trained)
            self.assertEqual(
                lockstep.torch.load(trained["model"], checkpoints), STEPS)
            return trained["model"]

        _, passes, trained = train(
            self, PLAIN + LOOP, 2,
            ["learning_rate=0.05", "optimizer.kind=MOMENTUM"], read=read,
            job_class=TorchJob)
        space = {}
        exec(PLAIN, space)
        alone = space["model"]
        first = [p.detach().clone() for p in alone.parameters()]
        optimizer = torch.optim.SGD(alone.parameters(), lr=0.05, momentum=0.9)
        for number in range(STEPS):
            rows = [row for share in range(NUMBERS)
                    for row in passes[number, share][1:]]
            optimizer.zero_grad()
            space["loss_of"](alone(space["x"][rows]),
                             space["y"][rows]).backward()
            optimizer.step()
        for a, b, before in zip(trained.parameters(), alone.parameters(),
                                first):
            self.assertLess(float((a - b).abs().max()), 1e-5)
            self.assertGreater(float((a - before).abs().max()), 1e-2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
