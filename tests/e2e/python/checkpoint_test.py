"""lockstep.checkpoint: what it reads, and what it says of damaged files."""

import builtins
import errno
import hashlib
import io
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import numpy as np

import lockstep
from lockstep import checkpoint

# A checkpoint that is cut short and removed while a program has it.
KEEPS = """
import os, shutil, sys
from lockstep import checkpoint
_, tensors = checkpoint.read(sys.argv[1])
folder = os.path.join(sys.argv[1], "step-00000020")
os.truncate(os.path.join(folder, "model.safetensors"), 0)
shutil.rmtree(folder)
assert checkpoint.array(*tensors["w"]).sum() == 3 * 100000
assert checkpoint.array(*tensors["b"]).tolist() == [5, 6]
"""


def write_file(folder, name, arrays):
    """Writes a safetensors file; returns its part of a manifest."""
    header, data = {}, b""
    for key, array in arrays.items():
        header[key] = {"dtype": "F32", "shape": list(array.shape),
                       "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    header = json.dumps(header).encode()
    data = struct.pack("<Q", len(header)) + header + data
    with open(os.path.join(folder, name), "wb") as f:
        f.write(data)
    return {"name": name, "sha256": hashlib.sha256(data).hexdigest()}


class CheckpointTest(unittest.TestCase):

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        self.folder = os.path.join(self.directory, "step-00000020")
        self.model = os.path.join(self.folder, "model.safetensors")
        self.manifest = os.path.join(self.folder, "manifest.json")
        os.mkdir(self.folder)
        values = {"w": np.full((100, 1000), 3, np.float32),
                  "b": np.array([5, 6], np.float32)}
        averages = {"b/ExponentialMovingAverage": np.ones(2, np.float32),
                    "b/Momentum": np.zeros(2, np.float32)}
        self.told = {"saved_at_unix_ms": 7, "files": [
            write_file(self.folder, "model.safetensors", values),
            write_file(self.folder, "optimizer.safetensors", averages)]}
        self.write(self.manifest, json.dumps(self.told).encode())

    def write(self, path, data):
        with open(path, "wb") as f:
            f.write(data)

    def test_values_are_read_only_and_averages_take_their_place(self):
        step, tensors = checkpoint.read(self.directory)
        self.assertEqual((step, sorted(tensors)), (20, ["b", "w"]))
        self.assertEqual(checkpoint.array(*tensors["b"]).tolist(), [5, 6])
        self.assertFalse(checkpoint.array(*tensors["w"]).flags.writeable)
        _, tensors = checkpoint.read(self.directory, averaged=True)
        self.assertEqual(sorted(tensors), ["b", "w"])
        self.assertEqual(checkpoint.array(*tensors["b"]).tolist(), [1, 1])

    def test_values_outlive_their_files(self):
        # In a process of its own, which a map of the file would end.
        done = subprocess.run([sys.executable, "-c", KEEPS, self.directory],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_file_that_a_network_has_lost_is_one_that_is_not_there(self):
        class Stale(io.BytesIO):
            name = ""

            def read(self, *_):
                raise OSError(errno.ESTALE, "Stale file handle", self.name)

        def lost(opens):
            def call(path, *given, **more):
                return (opens(path) if os.path.dirname(path) == self.folder
                        else open_file(path, *given, **more))
            return mock.patch.object(builtins, "open", call)

        def stale(path):
            raise OSError(errno.ESTALE, "Stale file handle", path)

        open_file = open
        evaluator = object.__new__(lockstep.Evaluator)
        evaluator._native = mock.Mock()
        for opens in (lambda _: Stale(), stale):
            with lost(opens):
                for call in (lambda: checkpoint.read(self.directory),
                             lambda: checkpoint.saved_at(self.directory, 20)):
                    with self.assertRaises(FileNotFoundError):
                        call()
                self.assertEqual(evaluator._newest(self.directory, None),
                                 (None, None))
        with mock.patch.object(os, "listdir", stale), \
                self.assertRaises(FileNotFoundError):
            checkpoint.steps(self.directory)

    def test_a_damaged_file_is_named(self):
        with open(self.model, "rb") as f:
            whole = f.read()
        for data in (b"", b"{}", whole[:-1], whole[:-1] + b"\x01"):
            self.write(self.model, data)
            with self.assertRaisesRegex(checkpoint.Damaged,
                                        f"{self.model} is damaged: sha256 is"):
                checkpoint.read(self.directory)
        os.remove(self.model)
        with self.assertRaises(FileNotFoundError):
            checkpoint.read(self.directory)

    def test_numbers_that_lead_out_of_a_file_are_named(self):
        # Before the hash is taken: of a file that may be large, and unused.
        path = os.path.join(self.folder, "optimizer.safetensors")
        key = "b/ExponentialMovingAverage"
        for data, reason in (
                (b"", "the length of the header ends behind"),
                (struct.pack("<Q", 2**60), "the header ends behind"),
                (struct.pack("<Q", 2) + b"[]", "has no attribute 'items'")):
            self.write(path, data)
            with self.assertRaisesRegex(checkpoint.Damaged,
                                        f"{path} is damaged: .*{reason}"):
                checkpoint.read(self.directory, averaged=None)
        for begin, end in (0, 2**60), (-8, 0), (4, 0):
            header = json.dumps({key: {"dtype": "F32", "shape": [2],
                                       "data_offsets": [begin, end]}}).encode()
            data = struct.pack("<Q", len(header)) + header + b"12345678"
            self.write(path, data)
            self.told["files"][1]["sha256"] = hashlib.sha256(data).hexdigest()
            self.write(self.manifest, json.dumps(self.told).encode())
            with self.assertRaisesRegex(checkpoint.Damaged,
                                        f'"{key}" ends behind the end'):
                checkpoint.read(self.directory, averaged=True)

    def test_a_damaged_manifest_is_named_and_no_other_file(self):
        at, files = '"saved_at_unix_ms": 7', self.told["files"]
        for data, reason, saved in (
                (b"", "Expecting value", False),
                (b"\xff\xfe\xfd", "codec can't decode", False),
                (json.dumps(self.told).encode()[:-9], "", False),
                (b"[]", "list indices", False),
                (b"null", "NoneType", False),
                (b"{}", "it has no 'saved_at_unix_ms'", False),
                (b'{"saved_at_unix_ms": "x"}', "interpreted as an int", False),
                (b"{%s}" % at.encode(), "it has no 'files'", True),
                (b'{%s, "files": 3}' % at.encode(), "not iterable", True),
                (b'{%s, "files": []}' % at.encode(),
                 "it has no 'model.safetensors'", True),
                (json.dumps({**self.told, "files": [
                    {"name": each["name"]} for each in files]}).encode(),
                 "it has no 'sha256'", True)):
            self.write(self.manifest, data)
            with self.subTest(data):
                named = f"^{self.manifest} is damaged: .*{reason}"
                if not saved:
                    with self.assertRaisesRegex(checkpoint.Damaged, named):
                        checkpoint.saved_at(self.directory, 20)
                else:
                    self.assertEqual(checkpoint.saved_at(self.directory, 20), 7)
                    with self.assertRaisesRegex(checkpoint.Damaged, named):
                        checkpoint.read(self.directory)
                with self.assertRaisesRegex(
                        checkpoint.Damaged, f"^{self.manifest} is damaged"):
                    checkpoint.read(self.directory)

    def test_only_folders_of_the_chief_s_names_are_checkpoints(self):
        # A copy that a person has made, which an evaluator would take for the
        # newest checkpoint and never find.
        shutil.rmtree(self.folder)
        others = ["step-9", "step-+0000009", "step-000000009", "step-\u00b2",
                  "step-\u0660\u0660\u0660\u0660\u0660\u0660\u0660\u0669",
                  "old-00000009", "step-00000009-copy"]
        for name in [*others, "step-00000007", "step-123456789"]:
            folder = os.path.join(self.directory, name)
            os.mkdir(folder)
            self.write(os.path.join(folder, "manifest.json"), b"")
        os.mkdir(os.path.join(self.directory, "step-00000008"))

        self.assertEqual(checkpoint.steps(self.directory), [7, 123456789])


if __name__ == "__main__":
    unittest.main(verbosity=2)
