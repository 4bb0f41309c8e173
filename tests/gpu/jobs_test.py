"""Jobs of the real programs whose workers compute on a GPU.

Usage: jobs_test.py    with LOCKSTEP_BIN, the folder of the programs. Needs NumPy.

LOCKSTEP_GPU_DEVICE=cpu tries the test itself where there is no GPU.
"""

import glob
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import numpy

BIN = os.environ["LOCKSTEP_BIN"]
DEVICE = os.environ.get("LOCKSTEP_GPU_DEVICE", "cuda")
MODELS = {
    "mlp": ["model.kind=mlp", "model.hidden_units=64,32"],
    "cnn": ["model.kind=cnn", "model.conv_filters=8,16",
            "model.hidden_units=32"],
    "resnet": ["model.kind=resnet", "model.conv_filters=8,16",
               "model.layers=1"],
}


def write_data(folder):
    """Pictures of 16 x 16 whose brightest quarter is their label."""
    generator = numpy.random.default_rng(1)
    for name, count in ("train", 2000), ("test", 400):
        labels = generator.integers(0, 4, count)
        pictures = generator.random((count, 16, 16, 1), dtype=numpy.float32)
        for quarter in range(4):
            y, x = 8 * (quarter // 2), 8 * (quarter % 2)
            pictures[labels == quarter, y:y + 8, x:x + 8] += 0.3
        numpy.save(f"{folder}/{name}_images.npy", pictures)
        numpy.save(f"{folder}/{name}_labels.npy", labels.astype(numpy.int32))


class Job:
    """What `lockstep run` leaves: its output, its logs and its checkpoint."""

    def __init__(self, data, sets, workers=2, servers=1, disturb=None):
        self.folder = tempfile.TemporaryDirectory(prefix="lockstep-gpu-")
        run = self.folder.name
        given = [f"data.{part}_{what}={data}/{part}_{what}.npy"
                 for part in ("train", "test") for what in ("images", "labels")]
        command = [f"{BIN}/lockstep", "run", "--workers", str(workers)]
        if servers:
            command += ["--ps", str(servers)]
        if DEVICE == "cuda":
            command += ["--gpus", "1"]
        sets = ["name=gpu", "seed=3", "train_steps=300", "batch_size=32",
                "optimizer.kind=MOMENTUM", "learning_rate=0.02",
                f"checkpoint.directory={run}/checkpoints", *given, *sets]
        for one in sets:
            command += ["--set", one]
        command += ["--log_dir", f"{run}/logs"]
        self.sets = command[command.index("--set"):command.index("--log_dir")]
        process = subprocess.Popen(command, text=True, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT)
        if disturb:
            disturb(process, f"{run}/checkpoints")
        self.output = process.communicate(timeout=240)[0]
        self.code = process.returncode

    def logs(self):
        texts = []
        for path in sorted(glob.glob(f"{self.folder.name}/logs/worker*")):
            with open(path, errors="replace") as log:
                texts.append(log.read())
        return texts

    def checkpoint(self):
        """Bytes by name of the last checkpoint's tensors, as exported."""
        out = f"{self.folder.name}/model.safetensors"
        subprocess.run([f"{BIN}/lockstep", "export", "--checkpoints",
                        f"{self.folder.name}/checkpoints", "--out", out],
                       check=True, stdout=subprocess.DEVNULL)
        with open(out, "rb") as file:
            return file.read()

    def accuracy(self):
        """On the test set, computed on the same device."""
        with open(f"{self.folder.name}/job.textproto", "w") as file:
            file.write('name: "gpu"\n')
        said = subprocess.run(
            [f"{BIN}/lockstep", "evaluate", "--device", DEVICE, "--job",
             file.name, *self.sets], check=True, text=True,
            stdout=subprocess.PIPE).stdout
        return float(re.search(r"accuracy[^0-9]*([0-9.]+)", said).group(1))


class GpuJobsTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.data = tempfile.TemporaryDirectory(prefix="lockstep-data-")
        write_data(cls.data.name)

    def run_job(self, sets, **more):
        job = Job(self.data.name, sets, **more)
        self.assertEqual(job.code, 0, job.output[-3000:])
        logs = job.logs()
        self.assertEqual(len(logs), 2)
        for log in logs:
            self.assertRegex(log, f"computes on {DEVICE}\\b")
        return job

    def test_models_learn_and_have_the_same_bits_twice(self):
        for name, sets in MODELS.items():
            with self.subTest(name):
                first, second = self.run_job(sets), self.run_job(sets)
                accuracy = first.accuracy()
                print(f"{name}: accuracy {accuracy},",
                      first.output.splitlines()[-1])
                self.assertGreater(accuracy, 0.9)
                self.assertEqual(first.checkpoint(), second.checkpoint())

    def test_mirrors_have_the_bits_of_servers(self):
        servers = self.run_job(MODELS["mlp"])
        mirrors = self.run_job(
            [*MODELS["mlp"], "strategy.kind=MULTI_WORKER_MIRRORED"], servers=0)
        self.assertEqual(servers.checkpoint(), mirrors.checkpoint())

    def test_a_killed_worker_comes_back_to_the_device_with_the_same_bits(self):
        def kill(process, checkpoints):
            end = time.monotonic() + 60
            while not glob.glob(f"{checkpoints}/*"):  # the first is of step 500
                self.assertLess(time.monotonic(), end, "no checkpoint")
                time.sleep(0.01)
            workers = subprocess.run(
                ["pgrep", "-P", str(process.pid), "-x", "worker"],
                capture_output=True, text=True).stdout.split()
            self.assertEqual(len(workers), 2)
            os.kill(int(workers[1]), signal.SIGKILL)
        sets = [*MODELS["cnn"], "train_steps=3000",
                "checkpoint.every_steps=500"]
        plain, killed = self.run_job(sets), self.run_job(sets, disturb=kill)
        again = "(?i)restart|again"
        self.assertNotRegex(plain.output, again)
        self.assertRegex(killed.output, again)
        self.assertEqual(plain.checkpoint(), killed.checkpoint())


if __name__ == "__main__":
    if DEVICE == "cuda" and subprocess.run(
            ["nvidia-smi"], capture_output=True).returncode != 0:
        print("SKIPPED, NOTHING WAS PROVED: no GPU here")
        sys.exit(77)
    unittest.main(verbosity=2)
