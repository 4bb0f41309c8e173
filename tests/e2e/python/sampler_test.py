"""lockstep.torch.Sampler with a DataLoader that has worker processes."""

import types
import unittest

from local_job import TorchJob
from needs import need

torch = need("torch")

import lockstep.torch

PROGRAM = """
import os
import sys
import time
import torch
torch.set_num_threads(1)
torch.manual_seed(0)
import lockstep.torch
from torch.utils.data import DataLoader

class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 100
    def __getitem__(self, i):
        if self.own is not None and os.getpid() == self.own:
            print("fetched here", i, flush=True)
        return torch.tensor([float(i)]), i
    own = None

if __name__ == "__main__":
    model = torch.nn.Linear(1, 1)
    worker = lockstep.torch.Worker(model)
    data = Data()
    data.own = os.getpid()
    sampler = lockstep.torch.Sampler(worker, data)
    loader = DataLoader(data, batch_sampler=sampler, num_workers=2,
                        multiprocessing_context=METHOD)
    for step, (x, i) in sampler.steps(loader):
        assert i.tolist() == step.indices(100).tolist(), (i, step.number)
        print("step", step.number, *i.tolist(), flush=True)
        time.sleep(PAUSE)
        step.backward(model(x / 100).mean())
    print("ended")
"""


def program(method="fork", pause="0"):
    return PROGRAM.replace("METHOD", repr(method)).replace("PAUSE", pause)


class SamplerTest(unittest.TestCase):

    def batches(self, job, worker):
        """The examples of a worker's passes, by step."""
        lines = (line.split()[1:]
                 for line in job.log("worker", worker).splitlines()
                 if line.startswith("step "))
        return {int(number): rows for number, *rows in lines}

    def test_batches_of_the_steps_are_fetched_ahead_in_other_processes(self):
        for method in ("fork", "spawn"):
            with self.subTest(method), TorchJob(
                    sets=["train_steps=30"]) as job:
                job.start_worker(0, program(method))
                self.assertEqual(job.wait("worker"), 0,
                                 job.log("worker")[-3000:])
                self.assertEqual(job.wait("chief"), 0)
                log = job.log("worker")
                self.assertIn("step 29 ", log)
                self.assertIn("ended", log)
                self.assertNotIn("fetched here", log)

    def test_batches_are_those_of_the_share_after_a_worker_has_come(self):
        with TorchJob(sets=["train_steps=150", "elastic_workers=true"]) as job:
            job.start_worker(0, program(pause="0.05"))
            job.wait_for_log("step 10 ")
            # The chief does not know it; each has half of the examples then.
            job.add_worker()
            job.start_worker(1, program(pause="0.05"))
            for worker in (0, 1):
                self.assertEqual(job.wait("worker", worker), 0,
                                 job.log("worker", worker)[-3000:])
            batches = [self.batches(job, worker) for worker in (0, 1)]
            for number in range(140, 150):
                mine, other = batches[0][number], batches[1][number]
                self.assertEqual(len(mine), len(other))
                self.assertFalse(set(mine) & set(other), number)

    def test_a_program_that_its_loader_imports_again_joins_once(self):
        for method in ("spawn", "forkserver"):
            with self.subTest(method), TorchJob(
                    sets=["train_steps=30"]) as job:
                unguarded = program(method).replace(
                    'if __name__ == "__main__":', "if True:")
                # A program of its own: the children read it from its file.
                job.forks = False
                job.start_worker(0, unguarded)
                self.assertEqual(job.wait("worker"), 1,
                                 job.log("worker")[-3000:])
                self.assertIn("RuntimeError: this process is a child that "
                              "multiprocessing is still starting",
                              job.log("worker"))
                self.assertIn('if __name__ == "__main__":', job.log("worker"))
                self.assertEqual(
                    job.log("chief").count("worker 0 registered"), 1,
                    job.log("chief"))

    def test_loaders_that_give_a_step_another_s_batch_are_refused(self):
        sampler = lockstep.torch.Sampler(
            types.SimpleNamespace(_pending=None), range(100))
        for loader, fix in ((types.SimpleNamespace(batch_sampler=None),
                             "give the loader this sampler"),
                            (types.SimpleNamespace(batch_sampler=sampler,
                                                   in_order=False),
                             "in_order=False.*leave it out")):
            with self.assertRaisesRegex(ValueError, fix):
                next(sampler.steps(loader))

    def test_a_data_set_without_length_or_elements_is_refused(self):
        class Stream(torch.utils.data.IterableDataset):
            def __len__(self):
                return 100

        for dataset in (iter(range(100)), {1, 2}, Stream()):
            with self.assertRaisesRegex(
                    TypeError, r"is a \w+; a Sampler needs.*next\(batches\)"):
                lockstep.torch.Sampler(types.SimpleNamespace(_pending=None),
                                       dataset)

    def test_the_loop_ends_with_the_input(self):
        with TorchJob(sets=["train_steps=100", "data.epochs=1"]) as job:
            job.start_worker(0, program())
            self.assertEqual(job.wait("worker"), 0, job.log("worker")[-3000:])
            self.assertEqual(job.wait("chief"), 0, job.log("chief")[-3000:])
            self.assertIn("ended", job.log("worker"))
            self.assertIn("step 11 ", job.log("worker"))
            self.assertNotIn("step 13 ", job.log("worker"))

    def test_the_input_ends_though_other_examples_are_left(self):
        # The native session then knows the end of other examples alone: a
        # worker that only left its loop would count as stopped.
        other = program().replace("step.backward(",
                                  "step.indices(1000); step.backward(")
        with TorchJob(sets=["train_steps=100", "data.epochs=1"]) as job:
            job.start_worker(0, other)
            self.assertEqual(job.wait("worker"), 0, job.log("worker")[-3000:])
            self.assertEqual(job.wait("chief"), 0, job.log("chief")[-3000:])
            self.assertIn("ended", job.log("worker"))
            self.assertIn("step 11 ", job.log("worker"))
            self.assertNotIn("step 13 ", job.log("worker"))

    def test_steps_that_come_again_have_their_own_batches(self):
        # The only server loses its state: the job goes back to a checkpoint.
        with TorchJob(sets=["train_steps=120", "checkpoint.every_steps=20"],
                      state=False) as job:
            job.start_worker(0, program(pause="0.01"))
            job.wait_for_log("step 50 ")
            job.kill("ps", 0)
            job.start_server(0)
            self.assertEqual(job.wait("worker"), 0, job.log("worker")[-3000:])
            self.assertEqual(job.wait("chief"), 0)
            steps = [line.split()[1:] for line in
                     job.log("worker").splitlines() if line.startswith("step ")]
            batches = {}
            for number, *rows in steps:
                self.assertEqual(batches.setdefault(number, rows), rows)
            self.assertIn(len(batches), (120, 121))
            self.assertGreater(len(steps), 121, job.log("chief"))
            self.assertIn("fetched here", job.log("worker"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
