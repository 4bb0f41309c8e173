"""Each program of python/examples learns something in a few steps."""

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import unittest

import numpy

from local_job import BIN, LocalJob

EXAMPLES = os.path.join(os.environ["LOCKSTEP_SOURCE"], "python", "examples")
NEEDS = {"torch_mlp": "torch", "torch_transformer": "torch",
         "torch_table": "torch", "jax_mlp": "jax", "numpy_regression": "numpy"}


class ExamplesTest(unittest.TestCase):

    def run_example(self, name, *sets, backups=0):
        if importlib.util.find_spec(NEEDS[name]) is None:
            self.skipTest(f"SKIPPED, NOTHING WAS PROVED: {name}: this "
                          f"interpreter has no {NEEDS[name]}")
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [os.path.join(BIN, "lockstep"), "run", "--ps", "1",
                 "--workers", str(2 + backups), "--backups", str(backups),
                 *[a for s in ["batch_size=32", *sets]
                                     for a in ("--set", s)],
                 "--", sys.executable, os.path.join(EXAMPLES, name + ".py")],
                capture_output=True, text=True, cwd=folder)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        found = re.search(r"done: step (\d+), loss ([0-9.]+)",
                          done.stdout + done.stderr)
        self.assertIsNotNone(found, done.stdout + done.stderr)
        return float(found.group(2))

    def test_every_example_has_a_test(self):
        self.assertEqual(set(NEEDS), {
            name[:-3] for name in os.listdir(EXAMPLES) if name.endswith(".py")})

    def test_the_lines_of_the_pages_are_those_of_the_example(self):
        with open(os.path.join(EXAMPLES, "torch_mlp.py"),
                  encoding="utf-8") as f:
            example = f.read().splitlines()
        for page in ("README.md", "python/README.md"):
            with open(os.path.join(os.environ["LOCKSTEP_SOURCE"], page),
                      encoding="utf-8") as f:
                lines = re.search("```python\n(.*?)```", f.read(),
                                  re.DOTALL)[1].splitlines()
            self.assertEqual(sum(line != "" for line in lines), 6, page)
            for line in lines:
                self.assertIn(line, example, page)

    def test_numpy_regression(self):
        self.assertLess(self.run_example(
            "numpy_regression", "train_steps=200", "learning_rate=0.05"), 0.1)

    def test_torch_mlp(self):
        self.assertLess(self.run_example(
            "torch_mlp", "train_steps=200", "optimizer.kind=ADAMW",
            "learning_rate=0.01"), 1.0)

    def test_torch_transformer(self):
        self.assertLess(self.run_example(
            "torch_transformer", "train_steps=60", "optimizer.kind=ADAMW",
            "learning_rate=0.003"), 2.5)

    def test_torch_table(self):
        # Ten passes over the examples: the answers are in the rows alone. It
        # begins at ln 2, 0.69.
        self.assertLess(self.run_example(
            "torch_table", "train_steps=200", "batch_size=512",
            "optimizer.kind=ADAM_TORCH", "learning_rate=0.01"), 0.1)

    def test_programs_whose_last_passes_were_in_vain_end_by_themselves(self):
        # Passes in vain end within backward, in hooks.
        self.run_example("torch_table", "train_steps=100",
                         "optimizer.kind=ADAGRAD", "learning_rate=0.1",
                         backups=1)

    def test_the_program_that_predicts_is_that_of_the_page(self):
        if importlib.util.find_spec("torch") is None:
            print("SKIPPED, NOTHING WAS PROVED: predict.py: this interpreter "
                  "has no torch")
            self.skipTest("no torch")
        page = os.path.join(os.environ["LOCKSTEP_SOURCE"], "deploy", "README.md")
        with open(page, encoding="utf-8") as f:
            program = re.search(r"`predict\.py`.*?```python\n(.*?)```",
                                f.read(), re.DOTALL).group(1)
        mine = """
import torch
model = torch.nn.Linear(1, 1)
x = torch.tensor([[1.0], [2.0]])
"""
        train = mine + """
import lockstep.torch
for step in lockstep.torch.Worker(model).steps():
    step.backward((model(x) - 3 * x).square().mean())
"""
        with LocalJob(sets=["train_steps=200", "learning_rate=0.1"]) as job:
            job.start_worker(0, train)
            self.assertEqual(job.wait("worker"), 0, job.log("worker"))
            self.assertEqual(job.wait("chief"), 0, job.log("chief"))
            for name, text in (("mine.py", mine), ("predict.py", program)):
                with open(job.path(name), "w") as f:
                    f.write(text)
            done = subprocess.run(
                [os.path.join(BIN, "lockstep"), "predict", "--job",
                 job.path("job.textproto"), "--", sys.executable,
                 job.path("predict.py")], capture_output=True, text=True,
                cwd=job.folder.name)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            outputs = numpy.load(job.path("outputs-200.npy"))
        self.assertEqual(outputs.shape, (2, 1))
        for value, wanted in zip(outputs[:, 0].tolist(), (3, 6)):
            self.assertAlmostEqual(value, wanted, delta=0.2)

    def test_jax_mlp(self):
        self.assertLess(self.run_example(
            "jax_mlp", "train_steps=200", "optimizer.kind=ADAMW",
            "learning_rate=0.01"), 1.0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
