"""The package's types, as mypy sees them, are those of its code."""

import os
import subprocess
import sys
import tempfile
import unittest

from needs import need

need("mypy")

# What users do not call themselves has no types: internals, and constructors of
# objects that the package makes.
INTERNAL = r"""
lockstep\._base\.[A-Za-z_]*
lockstep\._base\.BaseStep\.__init__
lockstep\._errors\..*
lockstep(\._evaluator)?\.Checkpoint\.__init__
lockstep\._native\.(Session|Evaluation|Memory)(\.__init__)?
lockstep\._session\..*
lockstep\._tables\..*
lockstep(\._worker)?\.Step\.__init__
lockstep\.torch\.Step\.__init__
"""

GOOD = """
import pathlib

import lockstep
import lockstep.checkpoint
import lockstep.torch
import numpy as np
import torch

def train(model: torch.nn.Module, x: torch.Tensor) -> int:
    table = lockstep.torch.Embedding(rows=10, dim=2)
    with lockstep.torch.Worker(model, buffers="local") as worker:
        for step in worker.steps():
            rows: torch.Tensor = step.indices(len(x))
            step.prefetch(rows, table=table)
            step.report(norm=1.0)
            if step.number > 0:
                step.backward(model(x[rows]).mean())
            else:
                step.push(model(x[rows]).mean())
    return worker.index

def train_arrays() -> None:
    worker = lockstep.Worker({"w": np.zeros(3), "t": lockstep.Table(rows=4)})
    for step in worker.steps():
        rows = step.rows("t", [1, 2])
        step.push({"w": step.values["w"], "t": lockstep.Rows([1, 2], rows)})

def read(model: torch.nn.Module, folder: pathlib.Path) -> int:
    step, tensors = lockstep.checkpoint.read(folder)
    return lockstep.torch.load(model, folder, step) + len(tensors)

def evaluate(model: torch.nn.Module) -> None:
    try:
        for checkpoint in lockstep.torch.Evaluator(model).checkpoints():
            checkpoint.report(loss=checkpoint.values()["w"].mean())
    except lockstep.JobFailed as error:
        print(error.exit_code)
"""

# As much of torch as these programs and the package's stubs name: mypy takes a
# minute to read all of torch, whose own types are not in question here.
TORCH = {
    "torch/__init__.pyi": """
from . import nn as nn

class device: ...

class Tensor:
    def __getitem__(self, rows: Tensor) -> Tensor: ...
    def __len__(self) -> int: ...
    def mean(self) -> Tensor: ...
""",
    "torch/nn/__init__.pyi": """
from torch import Tensor

class Module:
    def __call__(self, x: Tensor) -> Tensor: ...

class ReLU(Module): ...
""",
}

BAD = {
    'lockstep.torch.Worker("model")': "arg-type",
    "lockstep.Worker({}).stepz()": "attr-defined",
    "lockstep.Table(rows='many')": "arg-type",
    "lockstep.torch.load(torch.nn.ReLU())": "call-arg",
}


class TypesTest(unittest.TestCase):

    def mypy(self, folder, module, *args):
        return subprocess.run(
            [sys.executable, "-m", module, *args], cwd=folder,
            env=dict(os.environ, MYPYPATH=os.environ["PYTHONPATH"]),
            capture_output=True, text=True)

    def check(self, folder, programs):
        """Checks all programs in one run: its start takes most of the time."""
        os.makedirs(os.path.join(folder, "torch/nn"))
        for name, program in {**TORCH, **programs}.items():
            with open(os.path.join(folder, name), "w") as f:
                f.write(program)
        return self.mypy(folder, "mypy", "--strict",
                         "--implicit-reexport", "--follow-imports=silent",
                         "--ignore-missing-imports",
                         "--allow-untyped-calls", *programs)

    def test_the_stubs_are_those_of_the_code(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "internal"), "w") as f:
                f.write(INTERNAL)
            # What torch's own types are takes half a minute, and plays no part.
            with open(os.path.join(folder, "config"), "w") as f:
                f.write("[mypy]\n[mypy-torch.*]\nfollow_imports = skip\n")
            done = self.mypy(folder, "mypy.stubtest", "lockstep",
                             "--allowlist", "internal",
                             "--mypy-config-file", "config",
                             "--ignore-unused-allowlist")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_program_is_checked_against_them(self):
        with tempfile.TemporaryDirectory() as folder:
            programs = {"good.py": GOOD}
            for i, line in enumerate(BAD):
                programs[f"bad{i}.py"] = f"import lockstep.torch, torch\n{line}\n"
            done = self.check(folder, programs)
            told = done.stdout.splitlines()
            self.assertFalse([line for line in told if "good.py" in line
                              and ": error:" in line],
                             done.stdout + done.stderr)
            for i, (line, error) in enumerate(BAD.items()):
                found = [text for text in told
                         if text.startswith(f"bad{i}.py:2: error:")
                         and text.endswith(f"[{error}]")]
                self.assertEqual(len(found), 1, f"{line}: {done.stdout}")


if __name__ == "__main__":
    unittest.main(verbosity=2)
