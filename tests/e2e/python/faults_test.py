"""Python workers whose servers, chief or fellows are killed: the same bits."""

import os
import random
import signal
import sys
import time
import unittest

from local_job import TorchJob
from needs import need

torch = need("torch")

import lockstep.torch

MODEL = """
import torch
torch.set_num_threads(1)
torch.manual_seed(0)
class Model(torch.nn.Module):
    def __init__(self, embedding):
        super().__init__()
        self.embedding = embedding
        self.body = torch.nn.Sequential(
            torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.ReLU(),
            torch.nn.Dropout(0.1), torch.nn.Linear(16, 4))
    def forward(self, i):
        return self.body(self.embedding(i).flatten(1))
"""

WORKER = MODEL + """
import time
import lockstep.torch
model = Model(lockstep.torch.Embedding(rows=30, dim=4, std=0.1))
generator = torch.Generator().manual_seed(1)
x = torch.randint(0, 30, (256, 2), generator=generator)
y = torch.randint(0, 4, (256,), generator=generator)
worker = lockstep.torch.Worker(model)
for step in worker.steps():
    torch.manual_seed(step.seed % 2 ** 63)
    rows = step.indices(len(x))
    if step.number % 10 == 0:
        print("step", step.number, flush=True)
    time.sleep(PAUSE)
    step.backward(torch.nn.functional.cross_entropy(model(x[rows]), y[rows]))
"""

SETS = ["learning_rate=0.01", "optimizer.kind=ADAMW",
        "optimizer.weight_decay=0"]
# The norm of the mean over all servers, well below what it is without.
CLIPPED = ["clipping.kind=MEAN_GLOBAL_NORM", "clipping.limit=0.1"]
# Each landing runs a short storm; `tests/run.sh e2e` a whole one.
KILLS = 12 if os.environ.get("LOCKSTEP_STORMS") == "short" else 50


def worker(pause):
    """The program, which computes a pass for so many seconds longer."""
    return f"PAUSE = {pause}\n{WORKER}"


class FaultsTest(unittest.TestCase):

    sets = SETS
    undisturbed = {}  # tensors, by settings

    def train(self, disturb=None, steps=200, timeout=120, **more):
        # A job that is disturbed must last until it is.
        program = worker(0 if disturb is None else 0.004)
        with TorchJob(workers=2, servers=2,
                      sets=[f"train_steps={steps}", *self.sets],
                      **more) as job:
            for i in range(2):
                job.start_worker(i, program)
            if disturb is not None:
                disturb(job)
            for i in range(2):
                self.assertEqual(job.wait("worker", i, timeout), 0,
                                 job.log("worker", i)[-2000:])
            self.assertEqual(job.wait("chief"), 0, job.log("chief")[-2000:])
            space = {}
            exec(MODEL, space)
            model = space["Model"](lockstep.torch.Embedding(rows=30, dim=4))
            self.assertEqual(
                lockstep.torch.load(model, job.path("checkpoints")), steps)
            tensors = {key: value.clone() for key, value in
                       model.state_dict().items() if value.is_floating_point()}
            tensors["table"] = model.embedding(torch.arange(30))
            return tensors

    def plain(self, **options):
        key = str((self.sets, options))
        if key not in self.undisturbed:
            self.undisturbed[key] = self.train(**options)
        return self.undisturbed[key]

    def check(self, disturb, **options):
        plain, disturbed = self.plain(**options), self.train(disturb, **options)
        self.assertIn("body.1.running_mean", plain)
        for key, value in plain.items():
            self.assertTrue(torch.equal(value, disturbed[key]), key)

    def test_a_killed_server_changes_no_bit(self):
        def disturb(job):
            job.wait_for_log("step 50\n")
            job.kill("ps", 1)
            job.start_server(1)
        self.check(disturb)

    def test_a_killed_server_changes_no_bit_of_a_clipped_job(self):
        free = self.plain()
        self.sets = SETS + CLIPPED
        self.assertFalse(torch.equal(free["body.0.weight"],
                                     self.plain()["body.0.weight"]))
        self.test_a_killed_server_changes_no_bit()

    def test_a_killed_chief_changes_no_bit(self):
        def disturb(job):
            job.wait_for_log("step 50\n")
            job.kill("chief", 0)
            job.start_chief()
        self.check(disturb)

    def test_a_chief_killed_during_the_first_values_changes_no_bit(self):
        def disturb(job):
            self.assertEqual(job.wait("chief"), -signal.SIGKILL)
            job.start_chief()
        plain = self.plain(steps=40)
        for fault in ("chief.values.received:1", "chief.values.answering:2",
                      "chief.write.send:1", "chief.write.answered:2",
                      "chief.activate.send:1"):
            with self.subTest(fault):
                disturbed = self.train(
                    disturb, steps=40,
                    chief_environment={"LOCKSTEP_FAULT": fault + ":kill"})
                for key, value in plain.items():
                    self.assertTrue(torch.equal(value, disturbed[key]), key)

    def test_a_killed_worker_changes_no_bit(self):
        def disturb(job):
            job.wait_for_log("step 50\n", index=1)
            job.kill("worker", 1)
            job.start_worker(1, worker(0.004))
        self.check(disturb)


class StormTest(FaultsTest):

    sets = SETS + CLIPPED

    def test_kills_change_no_bit(self):
        rng = random.Random(5)

        def disturb(job):
            kills = 0
            while kills < KILLS:
                before = job.log("worker", 0) + job.log("worker", 1)
                task, index = rng.choice(
                    [("worker", 0), ("worker", 1), ("worker", 0),
                     ("worker", 1), ("ps", 0), ("ps", 1), ("chief", 0)])
                self.assertIsNone(job.tasks["chief", 0].poll(),
                                  f"the job ended after {kills} kills")
                if job.tasks[task, index].poll() is not None:
                    continue
                job.kill(task, index)
                kills += 1
                {"worker": lambda: job.start_worker(index, worker(0.004)),
                 "ps": lambda: job.start_server(index),
                 "chief": job.start_chief}[task]()
                # The next one comes when there are steps again.
                end = time.monotonic() + 60
                while len(job.log("worker", 0) + job.log("worker", 1)) <= len(
                        before) and job.tasks["chief", 0].poll() is None:
                    self.assertLess(time.monotonic(), end,
                                    f"no step after kill {kills}, of {task} "
                                    f"{index}")
                    time.sleep(0.02)
                time.sleep(rng.uniform(0, 0.3))
        self.check(disturb, steps=600 + 120 * KILLS, timeout=900)


if __name__ == "__main__":
    storm = sys.argv[1:] == ["storm"]
    case = StormTest if storm else FaultsTest
    names = (["test_kills_change_no_bit"] if storm else
             unittest.defaultTestLoader.getTestCaseNames(case))
    result = unittest.TextTestRunner(verbosity=2).run(
        unittest.TestSuite(map(case, names)))
    sys.exit(not result.wasSuccessful())
