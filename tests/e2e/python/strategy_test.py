"""Programs in Python under each kind of strategy, in real processes."""

import os
import subprocess
import sys
import tempfile
import unittest

from needs import need

torch = need("torch")

from local_job import BIN, TorchJob

WORKER = """
import torch
import lockstep.torch
torch.set_num_threads(1)
torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
generator = torch.Generator().manual_seed(1)
x = torch.randn(256, 8, generator=generator)
y = torch.randint(0, 4, (256,), generator=generator)
worker = lockstep.torch.Worker(model)
for step in worker.steps():
    rows = step.indices(len(x))
    if step.number % 10 == 0:
        print("step", step.number, flush=True)
    step.backward(torch.nn.functional.cross_entropy(model(x[rows]), y[rows]))
"""

# With numbers that each replica draws, a buffer that all share, a branch that
# only some passes take, and batches that a sampler fetches ahead.
VARIED = """
import torch
import lockstep.torch
torch.set_num_threads(1)
torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.ReLU(),
    torch.nn.Dropout(0.5), torch.nn.Linear(16, 4), torch.nn.Linear(4, 4))
generator = torch.Generator().manual_seed(1)
data = torch.utils.data.TensorDataset(
    torch.randn(256, 8, generator=generator),
    torch.randint(0, 4, (256,), generator=generator))
worker = lockstep.torch.Worker(model)
sampler = lockstep.torch.Sampler(worker, data)
loader = torch.utils.data.DataLoader(data, batch_sampler=sampler)
for step, (x, y) in sampler.steps(loader):
    if step.number % 10 == 0:
        print("step", step.number, "replica", step.replica, "of",
              worker.replicas, flush=True)
    torch.manual_seed(step.seed)
    logits = model[:-1](x)
    if step.seed % 3 == 0:
        logits = model[-1](logits)
    step.backward(torch.nn.functional.cross_entropy(logits, y))
"""

STEPS = 150
SETS = [f"train_steps={STEPS}", "learning_rate=0.01", "optimizer.kind=ADAMW",
        "max_part_bytes=128"]


class StrategyTest(unittest.TestCase):

    sets = []

    def train(self, kind, workers, servers, disturb=None, program=WORKER):
        """The bytes of the last checkpoint."""
        with TorchJob(workers=workers, servers=servers,
                      sets=[*SETS, *self.sets,
                            f"strategy.kind={kind}"]) as job:
            for i in range(workers):
                job.start_worker(i, program)
            if disturb is not None:
                disturb(job)
            for i in range(workers):
                self.assertEqual(job.wait("worker", i), 0,
                                 job.log("worker", i)[-2000:])
            self.assertEqual(job.wait("chief"), 0, job.log("chief")[-2000:])
            folder = os.path.join(job.path("checkpoints"), f"step-{STEPS:08}")
            files = []
            for name in ("model.safetensors", "optimizer.safetensors"):
                with open(os.path.join(folder, name), "rb") as file:
                    files.append(file.read())
            return files

    def test_one_worker_has_the_same_bits_under_each_kind(self):
        servers = self.train("PARAMETER_SERVER", 1, 1)
        for kind in ("ONE_DEVICE", "MIRRORED", "MULTI_WORKER_MIRRORED"):
            self.assertEqual(self.train(kind, 1, 1), servers, kind)

    def test_mirrors_have_the_bits_of_servers_also_when_one_is_lost(self):
        def lose(job):
            job.wait_for_log("step 50\n")
            job.kill("ps", 1)
            for name in os.listdir(job.path("state")):
                if name.endswith(".ps-1.state"):
                    os.remove(os.path.join(job.path("state"), name))
            job.start_server(1)
            job.wait_for_log("ps 1 has lost its state: takes the state of step",
                             "chief")
        # So slow that the job lasts until a mirror is lost.
        slow = "import time\n" + WORKER.replace(
            "    step.backward", "    time.sleep(0.01)\n    step.backward")
        servers = self.train("PARAMETER_SERVER", 2, 1)
        self.assertEqual(
            self.train("MULTI_WORKER_MIRRORED", 2, 2, lose, slow), servers)

    def test_replicas_in_turn_have_the_bits_of_as_many_workers(self):
        workers = self.train("PARAMETER_SERVER", 2, 1, program=VARIED)

        def kill(job):
            job.wait_for_log("step 50 replica 1 of 2\n")
            job.kill("worker", 0)
            job.start_worker(0, slow)
        slow = "import time\n" + VARIED.replace(
            "    torch.manual_seed(step",
            "    time.sleep(0.005)\n    torch.manual_seed(step")
        self.assertNotEqual(slow.count("sleep"), 0)
        self.sets = ["strategy.replicas_per_worker=2"]
        for kind in ("MIRRORED", "MULTI_WORKER_MIRRORED", "PARAMETER_SERVER"):
            self.assertEqual(self.train(kind, 1, 1, program=VARIED), workers,
                             kind)
        self.assertEqual(self.train("MIRRORED", 1, 1, kill, slow), workers)

    # Halves are exact in any floating-point number.
    def test_hooks_and_the_gradient_of_the_loss_change_what_is_sent(self):
        halved = WORKER.replace("worker = ", "for p in model.parameters():\n"
                                "    p.register_hook(lambda g: g * 0.5)\n"
                                "worker = ")
        begun = WORKER.replace("y[rows]))", "y[rows]),\n"
                               "                  gradient=torch.tensor(0.5))")
        self.sets = ["optimizer.kind=GRADIENT_DESCENT", "learning_rate=0.02"]
        whole = self.train("MULTI_WORKER_MIRRORED", 2, 2)
        self.sets[-1] = "learning_rate=0.04"
        for program in (halved, begun):
            self.assertNotEqual(program, WORKER)
            self.assertEqual(
                self.train("MULTI_WORKER_MIRRORED", 2, 2, program=program),
                whole)

    def run_command(self, *sets, workers=2):
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "train.py")
            with open(program, "w") as file:
                file.write(WORKER)
            command = [os.path.join(BIN, "lockstep"), "run", "--log_dir",
                       os.path.join(folder, "logs"), "--workers", str(workers)]
            for one in [*SETS, "batch_size=8", *sets]:
                command += ["--set", one]
            return subprocess.run([*command, "--", sys.executable, program],
                                  capture_output=True, text=True, timeout=120)

    def test_run_gives_each_program_a_mirror(self):
        run = self.run_command("strategy.kind=MULTI_WORKER_MIRRORED")
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertIn("2 ps, 1 chief, 2 workers", run.stdout)
        self.assertIn(f"done: step {STEPS}", run.stdout)

    def test_run_starts_one_program_for_several_replicas(self):
        run = self.run_command("strategy.kind=MIRRORED",
                               "strategy.replicas_per_worker=2", workers=1)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertIn("1 chief, 1 worker", run.stdout)
        self.assertIn(f"done: step {STEPS}", run.stdout)

    def test_what_a_program_cannot_do_is_refused_with_the_fix(self):
        for sets, words in (
                (["strategy.kind=ONE_DEVICE", "strategy.replicas_per_worker=2"],
                 "set the kind to MIRRORED"),
                (["strategy.kind=MIRRORED", "strategy.devices=cpu:0,cpu:1"],
                 "chooses its device itself"),
                (["strategy.kind=MIRRORED"],
                 "set strategy.replicas_per_worker to 2"),
                (["strategy.kind=MULTI_WORKER_MIRRORED", "mode=COMPATIBLE"],
                 "set strategy.kind to PARAMETER_SERVER")):
            run = self.run_command(*sets)
            self.assertEqual(run.returncode, 2, run.stdout + run.stderr)
            self.assertIn(words, run.stdout + run.stderr)


if __name__ == "__main__":
    unittest.main()
