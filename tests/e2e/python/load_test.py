"""What models get of a checkpoint: nothing without values, or averages."""

import os
import subprocess
import sys
import unittest

import numpy as np

from needs import need

torch = need("torch")

import lockstep.torch
from local_job import BIN, TorchJob
from lockstep._torch_describe import describe
from lockstep._torch_load import fill, shared_buffers

# A step leaves 0.9 of the weight.
MODEL = """
import torch
import lockstep.torch
model = torch.nn.Linear(1, 1, bias=False)
torch.nn.init.ones_(model.weight)
"""
WORKER = MODEL + """
for step in lockstep.torch.Worker(model).steps():
    step.backward(model.weight.pow(2).sum() / 2)
"""
EVALUATOR = MODEL + """
for checkpoint in lockstep.torch.Evaluator(model).checkpoints():
    print(f"scored {checkpoint.step}: {model.weight.item():.4f}", flush=True)
    checkpoint.report(w=model.weight.item())
"""


def ones(*shape):
    return "F32", shape, np.ones(shape, np.float32).reshape(-1).view(np.uint8)


class LoadTest(unittest.TestCase):

    def test_a_model_on_the_meta_device_is_not_trained(self):
        with self.assertRaisesRegex(ValueError, 'parameter "w" is on the device "meta'):
            describe("parameter", "w", torch.zeros(2, device="meta"), False)
        norm = torch.nn.BatchNorm1d(2, affine=False).to("meta")
        with self.assertRaisesRegex(ValueError,
                                    'buffer "running_mean" is on the device "meta'):
            shared_buffers(norm)

    def test_a_damaged_checkpoint_is_not_loaded(self):
        with TorchJob(workers=1, sets=["train_steps=6",
                                       "learning_rate=0.1"]) as job:
            job.start_worker(0, WORKER)
            self.assertEqual(job.wait("worker", 0), 0, job.log("worker", 0))
            directory = job.path("checkpoints")
            model = torch.nn.Linear(1, 1, bias=False)
            self.assertEqual(lockstep.torch.load(model, directory), 6)
            self.assertAlmostEqual(model.weight.item(), 0.9 ** 6, places=5)
            file = f"{directory}/step-00000006/model.safetensors"
            with open(file, "r+b") as f:
                f.seek(-1, os.SEEK_END)
                last = f.read(1)
                f.seek(-1, os.SEEK_END)
                f.write(bytes([last[0] ^ 1]))
            with self.assertRaisesRegex(ValueError, "sha256 is .* use another"):
                lockstep.torch.load(model, directory)
            for other in (os.path.dirname(file), file, file + "/none"):
                with self.assertRaisesRegex(FileNotFoundError, "give the chec"):
                    lockstep.torch.load(model, other)

    def test_a_model_on_the_meta_device_is_not_loaded(self):
        saved = {"weight": ones(2, 3), "bias": ones(2)}
        model = torch.nn.Linear(3, 2)
        fill(model, 5, saved)
        self.assertTrue(torch.equal(model.weight, torch.ones(2, 3)))
        with self.assertRaisesRegex(ValueError, '"weight" is on the device "meta'):
            fill(model.to("meta"), 5, saved)

    def test_a_sparse_buffer_stays_as_it_is(self):
        for sparse in torch.eye(2).to_sparse(), torch.eye(2).to_sparse_csr():
            model = torch.nn.Linear(3, 2)
            model.register_buffer("graph", sparse)
            with self.assertWarnsRegex(RuntimeWarning, 'has no "graph"'):
                fill(model, 5, {"weight": ones(2, 3), "bias": ones(2)})
            self.assertTrue(torch.equal(model.bias, torch.ones(2)))

    def test_a_wrapper_that_the_job_had_or_this_model_has_is_named(self):
        saved = {"weight": ones(2, 3), "bias": ones(2)}
        wrapped = {"_orig_mod." + name: one for name, one in saved.items()}
        linear = torch.nn.Linear(3, 2)
        model = torch.nn.ModuleDict({"_orig_mod": linear})
        fill(model, 5, wrapped)
        with self.assertRaisesRegex(
                ValueError, 'no "weight", but "_orig_mod.weight": the job '):
            fill(linear, 5, wrapped)
        with self.assertRaisesRegex(
                ValueError, 'no "_orig_mod.weight", but "weight": this model '):
            fill(model, 5, saved)
        with self.assertRaisesRegex(ValueError, 'has no "weight", but "'):
            fill(linear, 5, {"my_weight": ones(2, 3), "my_bias": ones(2)})
        with self.assertRaisesRegex(ValueError, 'has no "0.weight", but "'):
            fill(torch.nn.Sequential(linear, torch.nn.Linear(2, 2)), 5, saved)

    def test_an_older_checkpoint_is_loaded_by_its_step(self):
        with TorchJob(sets=["train_steps=4", "checkpoint.every_steps=2"]) as job:
            job.start_worker(0, WORKER)
            self.assertEqual(job.wait("chief"), 0, job.log("chief"))
            model = torch.nn.Linear(1, 1, bias=False)
            directory = job.path("checkpoints")
            older = lockstep.torch.load(model, directory, step=2)
            value = model.weight.item()
            newest = lockstep.torch.load(model, directory)
        self.assertEqual((older, newest), (2, 4))
        self.assertAlmostEqual(model.weight.item(), value ** 2, places=6)
        self.assertLess(value, 1)

    def test_a_parameter_without_a_shape_is_named(self):
        with self.assertRaisesRegex(ValueError, '"weight" has no shape yet'):
            fill(torch.nn.LazyLinear(2), 5, {"weight": ones(2, 3)})

    def test_a_parameter_without_elements_is_neither_trained_nor_loaded(self):
        empty = """
weight = model.weight
del model.weight
model.none = torch.nn.Parameter(torch.ones(0, 3))
model.weight = weight
"""
        with TorchJob(sets=["train_steps=2", "learning_rate=0.1"]) as job:
            job.start_worker(0, MODEL + empty + WORKER[len(MODEL):].replace(
                "model.weight.pow(2).sum()",
                "(model.weight.pow(2).sum() + model.none.sum())"))
            self.assertEqual(job.wait("worker"), 0, job.log("worker"))
            self.assertEqual(job.wait("chief"), 0, job.log("chief"))
            model = torch.nn.Linear(1, 1, bias=False)
            model.none = torch.nn.Parameter(torch.ones(0, 3))
            self.assertEqual(
                lockstep.torch.load(model, job.path("checkpoints")), 2)
            self.assertAlmostEqual(model.weight.item(), 0.81, places=5)

    def test_evaluators_score_the_averages_if_the_job_says_so(self):
        value = average = 1.0
        for _ in range(4):
            value *= 0.9
            average += 0.5 * (value - average)
        for scored, evaluate in (average, "true"), (value, "false"):
            with TorchJob(evaluator=True, sets=[
                    "train_steps=4", "learning_rate=0.1",
                    "moving_average.decay=0.5",
                    f"moving_average.evaluate={evaluate}"]) as job:
                job.start_program("evaluator", 0, EVALUATOR)
                job.wait_for_log("evaluator 0 registered", "chief")
                job.start_worker(0, WORKER)
                self.assertEqual(job.wait("evaluator"), 0,
                                 job.log("evaluator"))
                self.assertIn(f"scored 4: {scored:.4f}", job.log("evaluator"))
                self.assertEqual(job.wait("chief"), 0, job.log("chief"))
                directory = job.path("checkpoints")
                the_job = ["--job", job.path("job.textproto"), *job.sets]
                for which, figure in (["--checkpoints", directory], average), (
                        the_job, scored):
                    done = subprocess.run(
                        [os.path.join(BIN, "lockstep"), "evaluate", *which,
                         "--", sys.executable, "-c", EVALUATOR],
                        capture_output=True, text=True)
                    self.assertIn(f"scored 4: {figure:.4f}", done.stdout,
                                  done.stderr)
                model = torch.nn.Linear(1, 1, bias=False)
                for averaged, wanted in (False, value), (True, average):
                    lockstep.torch.load(model, directory, averaged=averaged)
                    self.assertAlmostEqual(model.weight.item(), wanted, places=5)
                # A file that is not needed may be damaged.
                file = os.path.join(directory, "step-00000004",
                                    "optimizer.safetensors")
                with open(file, "r+b") as f:
                    f.seek(-1, os.SEEK_END)
                    f.write(b"\x7f")
                lockstep.torch.load(model, directory)
                with self.assertRaisesRegex(ValueError, "optimizer.*sha256 is"):
                    lockstep.torch.load(model, directory, averaged=True)

    def test_averages_that_a_job_does_not_keep_are_refused(self):
        with TorchJob(evaluator=True, sets=["train_steps=2"]) as job:
            job.start_program("evaluator", 0, EVALUATOR.replace(
                "(model)", "(model, averaged=True)"))
            job.wait_for_log("evaluator 0 registered", "chief")
            job.start_worker(0, WORKER)
            refused = "step 2 .* has no moving averages: leave averaged=True out"
            self.assertEqual(job.wait("evaluator"), 1, job.log("evaluator"))
            self.assertRegex(job.log("evaluator"), refused)
            self.assertEqual(job.wait("chief"), 0, job.log("chief"))
            model = torch.nn.Linear(1, 1, bias=False)
            with self.assertRaisesRegex(ValueError, refused):
                lockstep.torch.load(model, job.path("checkpoints"),
                                    averaged=True)


if __name__ == "__main__":
    unittest.main(verbosity=2)
