"""checkpoint.initial_values in jobs of `lockstep run`, of both kinds."""

import ast
import functools
import glob
import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest

from local_job import BIN
from lockstep import checkpoint
import numpy as np

# Each step halves w and leaves b; the loss is the sum of w.
PROGRAM = """
import numpy as np
import lockstep

worker = lockstep.Worker({"w": np.ones((2, 3), np.float32),
                          "b": np.full(4, 5, np.float32)})
for step in worker.steps():
    w, b = step.values["w"], step.values["b"]
    print("values", [step.number, w.tolist(), b.tolist()], flush=True)
    step.push({"w": w, "b": np.zeros(4, np.float32)}, loss=float(w.sum()))
"""

W = np.arange(6, dtype=np.float32).reshape(2, 3)
B = np.full(4, 7, np.float32)

KINDS = {"PARAMETER_SERVER": ["--ps", "1"], "MULTI_WORKER_MIRRORED": []}


def write(path, tensors):
    """Writes a file as another program of safetensors would."""
    header, end = {}, 0
    for name, array in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(array.shape),
                        "data_offsets": [end, end + array.nbytes]}
        end += array.nbytes
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in tensors.values():
            file.write(array.tobytes())


def of_each_kind(test):
    """Calls the test with each kind of job."""
    @functools.wraps(test)
    def tests(self):
        for kind in KINDS:
            with self.subTest(kind=kind):
                test(self, kind)
    return tests


class InitialValuesTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="lockstep-initial-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.runs = 0
        with open(self.path("program.py"), "w") as file:
            file.write(PROGRAM)
        write(self.path("values"), {"w": W, "b": B})

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_job(self, kind, values=None, steps=1, code=0, name="job", more=()):
        """Returns what the terminal says."""
        self.runs += 1
        sets = [f"strategy.kind={kind}", f"train_steps={steps}", "batch_size=8",
                "learning_rate=0.5", "optimizer.kind=GRADIENT_DESCENT",
                f"checkpoint.directory={self.path(name + kind)}", *more]
        if values is not None:
            sets.append(f"checkpoint.initial_values={self.path(values)}")
        done = subprocess.run(
            [os.path.join(BIN, "lockstep"), "run", *KINDS[kind], "--workers",
             "2", "--log_dir", self.path(f"logs-{self.runs}"),
             *[a for s in sets for a in ("--set", s)],
             "--", sys.executable, self.path("program.py")],
            capture_output=True, text=True, cwd=self.folder, timeout=120)
        said = done.stdout + done.stderr
        self.assertEqual(done.returncode, code, said)
        return said

    def told(self, word):
        """What each of the two workers has first printed after a word."""
        firsts = []
        for path in glob.glob(self.path(f"logs-{self.runs}/worker-?.log")):
            with open(path) as file:
                firsts += [ast.literal_eval(line[len(word):])
                           for line in file if line.startswith(word)][:1]
        self.assertEqual(len(firsts), 2)
        return firsts

    def first_values(self):
        """[step, w, b] of the first pass, the same for both workers."""
        firsts = self.told("values ")
        self.assertEqual(firsts[0], firsts[1])
        return firsts[0]

    def check_saved(self, kind, step, values, name="job", variable="w"):
        _, tensors = checkpoint.read(self.path(name + kind), step)
        saved = checkpoint.array(*tensors[variable])
        np.testing.assert_array_equal(saved, values)

    @of_each_kind
    def test_without_a_file_all_begin_with_the_values_of_one_worker(self, kind):
        with open(self.path("program.py"), "w") as file:
            file.write(PROGRAM.replace("import lockstep\n", """import lockstep
own = np.random.default_rng().random((2, 3), np.float32)
print("own ", own.tolist(), flush=True)
""").replace("np.ones((2, 3), np.float32)", "own"))
        self.run_job(kind)
        owns = self.told("own ")
        self.assertNotEqual(owns[0], owns[1])
        _, w, _ = self.first_values()
        self.assertIn(w, owns)
        self.check_saved(kind, 1, np.array(w, np.float32) / 2)

    @of_each_kind
    def test_the_first_step_has_the_values_of_the_file(self, kind):
        said = self.run_job(kind, "values")
        self.assertEqual(self.first_values(), [0, W.tolist(), B.tolist()])
        self.assertIn("2 of 2 variables begin with the values of "
                      + self.path("values") + "\n", said)
        self.assertIn("done: step 1, loss 15.0000,", said)
        self.check_saved(kind, 1, W / 2)

    def test_another_kind_of_job_begins_with_a_checkpoint(self):
        self.run_job("PARAMETER_SERVER", "values", steps=3)
        model = "jobPARAMETER_SERVER/step-00000003/model.safetensors"
        self.run_job("MULTI_WORKER_MIRRORED", model)
        self.assertEqual(self.first_values(), [0, (W / 8).tolist(), B.tolist()])

    @of_each_kind
    def test_a_variable_that_the_file_lacks_begins_as_always(self, kind):
        write(self.path("part"), {"w": W})
        said = self.run_job(kind, "part")
        self.assertIn("1 of 2 variables begin with the values of "
                      + self.path("part") + '; "b" is not in it and begins '
                      "as without it\n", said)
        self.assertEqual(self.first_values(), [0, W.tolist(), [5.0] * 4])

    @of_each_kind
    def test_a_file_without_any_variable_is_refused(self, kind):
        write(self.path("other"), {"v": W})
        said = self.run_job(kind, "other", code=1)
        self.assertIn(
            "checkpoint.initial_values: 0 of 2 variables begin with the "
            f"values of {self.path('other')}; \"w\", \"b\" are not in it",
            said.splitlines()[-1])

    @of_each_kind
    def test_another_shape_is_refused_with_both(self, kind):
        write(self.path("turned"), {"w": W.T, "b": B})
        said = self.run_job(kind, "turned", code=1)
        self.assertIn(
            f"checkpoint.initial_values: {self.path('turned')} has \"w\" as "
            "F32[3,2]; the model has F32[2,3]; leave it out of the file, or "
            "change the model", said.splitlines()[-1])
        # Nothing was trained or saved.
        self.assertEqual(checkpoint.steps(self.path("job" + kind)), [])

    @of_each_kind
    def test_only_a_variable_that_keeps_its_value_may_be_infinite(self, kind):
        mask = np.full(4, -np.inf, np.float32)
        write(self.path("mask"), {"w": W, "b": mask})
        said = self.run_job(kind, "mask", code=1)
        self.assertIn(f"{self.path('mask')} has NaN or an infinity in \"b\"",
                      said.splitlines()[-1])
        self.run_job(kind, "mask", steps=2, more=["untrained=b"])
        self.check_saved(kind, 2, W / 4)
        self.check_saved(kind, 2, mask, variable="b")

    @of_each_kind
    def test_a_file_that_is_not_there_is_refused_before_any_start(self, kind):
        said = self.run_job(kind, "nosuch", code=2)
        self.assertIn("checkpoint.initial_values is " + self.path("nosuch"),
                      said)
        self.assertFalse(os.path.exists(self.path(f"logs-{self.runs}")))

    @of_each_kind
    def test_a_checkpoint_of_the_job_comes_before_the_file(self, kind):
        write(self.path("turned"), {"w": W.T, "b": B})
        self.run_job(kind, "values", steps=2)
        # Even a file that would be refused: it is not read.
        for values, step in (("turned", 2), ("nosuch", 4)):
            said = self.run_job(kind, values, steps=step + 2)
            self.assertIn(f"resumed from the checkpoint of step {step} in",
                          said)
            self.assertNotIn("begin with the values", said)
            self.assertEqual(
                self.first_values(),
                [step, (W / 2**step).tolist(), B.tolist()])
        self.check_saved(kind, 6, W / 2**6)


if __name__ == "__main__":
    unittest.main()
