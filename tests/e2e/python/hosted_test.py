"""Programs in Python that host the chief and the mirrors of their job."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from local_job import BIN, LocalJob
from lockstep import checkpoint

WORKER = """
import numpy as np
import lockstep
random = np.random.default_rng(1)
x = random.normal(size=(256, 8)).astype(np.float32)
y = (x @ random.normal(size=(8, 4))).astype(np.float32)
worker = lockstep.Worker({"w": np.zeros((8, 4), np.float32),
                          "b": np.zeros(4, np.float32)})
for step in worker.steps():
    if step.number % 10 == 0:
        print("step", step.number, flush=True)
    rows = step.indices(len(x))
    off = x[rows] @ step.values["w"] + step.values["b"] - y[rows]
    step.push({"w": x[rows].T @ off / len(rows), "b": off.mean(0)},
              loss=(off ** 2).mean())
print("the loop has ended", flush=True)
"""

EARLY = WORKER.replace("    rows =", "    if step.number == 30: break\n    rows =")

STEPS = 200
SETS = [f"train_steps={STEPS}", "learning_rate=0.05", "optimizer.kind=MOMENTUM",
        "max_part_bytes=64"]
MIRRORS = [*SETS, "strategy.kind=MULTI_WORKER_MIRRORED"]


class HostedTest(unittest.TestCase):

    def checkpoint(self, job):
        """The bytes of the last checkpoint."""
        files = []
        for name in ("model.safetensors", "optimizer.safetensors"):
            path = os.path.join(job.path("checkpoints"), f"step-{STEPS:08}",
                                name)
            with open(path, "rb") as file:
                files.append(file.read())
        return files

    def train(self, tasks, **options):
        with LocalJob(**options) as job:
            for task, index in tasks:
                job.start_program(task, index, WORKER)
            for task, index in tasks:
                self.assertEqual(job.wait(task, index), 0,
                                 job.log(task, index)[-2000:])
                self.assertIn("the loop has ended", job.log(task, index))
            return self.checkpoint(job)

    def servers(self):
        return self.train([("worker", 0), ("worker", 1)], workers=2, sets=SETS)

    def test_workers_alone_have_the_bits_of_a_job_with_servers(self):
        self.assertEqual(
            self.train([("worker", 0), ("worker", 1)], workers=2, servers=0,
                       chief="worker", sets=MIRRORS), self.servers())

    def test_a_chief_that_computes_is_the_first_worker(self):
        self.assertEqual(
            self.train([("chief", 0), ("worker", 0)], workers=1, servers=0,
                       chief="hosted", sets=MIRRORS), self.servers())

    def test_worker_0_runs_the_chief_beside_servers(self):
        with LocalJob(workers=2, servers=1, chief="worker", sets=SETS) as job:
            for i in range(2):
                job.start_worker(i, WORKER)
            for i in range(2):
                self.assertEqual(job.wait("worker", i), 0,
                                 job.log("worker", i)[-2000:])
            self.assertEqual(job.wait("ps", 0), 0)
            self.assertEqual(self.checkpoint(job), self.servers())

    def remove_state(self, job, index):
        names = [name for name in os.listdir(job.path("state"))
                 if name.endswith(f".ps-{index}.state")]
        self.assertEqual(len(names), 1, names)
        os.remove(os.path.join(job.path("state"), names[0]))

    def test_a_forked_child_of_a_killed_program_does_not_hold_its_port(self):
        forks = WORKER.replace("for step in worker.steps():", """
import os, time
child = f"CHILDREN/{os.getpid()}"
open(child, "w").close()
if os.fork() == 0:
    try:
        while os.path.exists("GOES_ON"):
            time.sleep(0.1)
        os.remove(child)
    finally:
        os._exit(0)
for step in worker.steps():
    time.sleep(0.01)""")
        with LocalJob(workers=2, servers=0, chief="worker",
                      sets=MIRRORS) as job:
            goes_on, children = job.path("goes_on"), job.path("children")
            open(goes_on, "w").close()
            os.mkdir(children)
            forks = forks.replace("GOES_ON", goes_on).replace(
                "CHILDREN", children)
            for i in range(2):
                job.start_worker(i, forks)
            for index, step in ((1, 20), (0, 60)):
                job.wait_for_log(f"step {step}\n", index=index)
                job.kill("worker", index)
                job.start_worker(index, forks)
            for i in range(2):
                self.assertEqual(job.wait("worker", i), 0,
                                 job.log("worker", i)[-2000:])
                self.assertNotIn("the port is taken", job.log("worker", i))
            self.assertEqual(len(os.listdir(children)), 4)
            os.remove(goes_on)
            end = time.monotonic() + 60
            while os.listdir(children) and time.monotonic() < end:
                time.sleep(0.02)
            self.assertEqual(os.listdir(children), [])

    def test_programs_in_cpp_host_them_too(self):
        def train(kind, **options):
            sets = [f"train_steps={STEPS}", "learning_rate=0.01",
                    "optimizer.kind=ADAM_TORCH", "max_part_bytes=64",
                    f"strategy.kind={kind}"]
            with LocalJob(workers=2, sets=sets, **options) as job:
                for i in range(2):
                    job.start("worker", i, [os.path.join(BIN, "session_worker")])
                for i in range(2):
                    self.assertEqual(job.wait("worker", i), 0,
                                     job.log("worker", i)[-2000:])
                return self.checkpoint(job)
        self.assertEqual(
            train("MULTI_WORKER_MIRRORED", servers=0, chief="worker"),
            train("PARAMETER_SERVER", servers=1))

    def test_the_death_of_any_process_leaves_the_bits_as_they_are(self):
        slow = "import time\n" + WORKER.replace(
            "    rows =", "    time.sleep(0.01)\n    rows =")
        with LocalJob(workers=2, servers=0, chief="worker",
                      sets=MIRRORS) as job:
            for i in range(2):
                job.start_worker(i, slow)
            # Worker 0 hosts the chief.
            for index, step, wiped in ((1, 40, False), (0, 80, False),
                                       (1, 120, True), (0, 160, True)):
                job.wait_for_log(f"step {step}\n", index=index)
                job.kill("worker", index)
                if wiped:
                    self.remove_state(job, index)
                job.start_worker(index, slow)
            for i in range(2):
                self.assertEqual(job.wait("worker", i), 0,
                                 job.log("worker", i)[-2000:])
            self.assertEqual(self.checkpoint(job), self.servers())

    def test_a_program_that_leaves_its_loop_stops_the_job_it_carries(self):
        for early in range(2):
            with LocalJob(workers=2, servers=0, chief="worker",
                          sets=MIRRORS) as job:
                for i in range(2):
                    job.start_worker(i, EARLY if i == early else WORKER)
                self.assertEqual(job.wait("worker", early), 143,
                                 job.log("worker", early)[-2000:])
                self.assertNotEqual(job.wait("worker", 1 - early), 0)
                self.assertIn("JobStopped", job.log("worker", 1 - early))

    def test_so_does_a_program_whose_worker_goes_out_of_scope(self):
        head, loop = EARLY.split("worker = ")
        body = "worker = " + loop.split("print(\"the loop")[0]
        program = (head + "def train():\n" + "".join(
            "    " + line for line in body.splitlines(True)) +
            "train()\nprint('trained', flush=True)\nPAUSE\n")
        for early, pause in enumerate(
                ("", "import time; time.sleep(3)")):
            with LocalJob(workers=2, servers=0, chief="worker",
                          sets=MIRRORS) as job:
                for i in range(2):
                    job.start_worker(i, program.replace("PAUSE", pause)
                                     if i == early else WORKER)
                self.assertEqual(job.wait("worker", early), 143,
                                 job.log("worker", early)[-2000:])
                self.assertIn("trained", job.log("worker", early))
                self.assertNotEqual(job.wait("worker", 1 - early), 0)
                self.assertIn("JobStopped", job.log("worker", 1 - early))

    def test_so_does_a_program_in_cpp(self):
        with LocalJob(workers=2, servers=0, chief="worker",
                      sets=MIRRORS) as job:
            for i in range(2):
                job.start("worker", i, [os.path.join(BIN, "session_worker"),
                                        *(["--passes=30"] if i == 0 else [])])
            for i in range(2):
                self.assertEqual(job.wait("worker", i), 143,
                                 job.log("worker", i)[-2000:])

    def test_a_program_that_fails_gives_the_job_it_carries_its_reason(self):
        fails = EARLY.replace("break", 'raise ValueError("no data\\nhere")')
        for failing in range(2):
            with LocalJob(workers=2, servers=0, chief="worker",
                          sets=MIRRORS) as job:
                for i in range(2):
                    job.start_worker(i, fails if i == failing else WORKER)
                for i in range(2):
                    self.assertEqual(job.wait("worker", i), 1,
                                     job.log("worker", i)[-2000:])
                other = job.log("worker", 1 - failing)
                self.assertIn("JobFailed", other)
                self.assertIn(f"worker {failing}", other)
                self.assertIn("ValueError: no data; here", other)

    def test_a_signal_stops_the_job_with_a_checkpoint(self):
        with LocalJob(workers=2, servers=0, chief="worker",
                      sets=[*MIRRORS, "train_steps=1000000"]) as job:
            for i in range(2):
                job.start_worker(i, WORKER)
            job.wait_for_log("step 20\n", index=1)
            job.tasks["worker", 1].send_signal(signal.SIGTERM)
            for i in range(2):
                self.assertNotEqual(job.wait("worker", i), 0)
                self.assertIn("JobStopped", job.log("worker", i))
            # The directory has the chief's mark also without a checkpoint.
            steps = checkpoint.steps(job.path("checkpoints"))
            self.assertGreaterEqual(max(steps, default=0), 20, steps)

    def test_a_chief_without_a_job_names_the_option(self):
        with LocalJob(workers=1, servers=0, chief="worker") as job:
            job.start_worker(0, WORKER, LOCKSTEP_JOB="")
            self.assertNotEqual(job.wait("worker"), 0)
            self.assertIn("LOCKSTEP_JOB", job.log("worker"))

    def test_run_takes_a_cluster_of_workers_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (
                    ("train.py", WORKER),
                    ("cluster.json", json.dumps(
                        {"cluster": {"chief": ["localhost:0"],
                                     "worker": ["localhost:0"]}}))):
                with open(os.path.join(folder, name), "w") as file:
                    file.write(text)
            command = [os.path.join(BIN, "lockstep"), "run", "--log_dir",
                       os.path.join(folder, "logs"), "--cluster",
                       os.path.join(folder, "cluster.json")]
            for one in [*MIRRORS, "batch_size=8"]:
                command += ["--set", one]
            run = subprocess.run(
                [*command, "--", sys.executable,
                 os.path.join(folder, "train.py")],
                capture_output=True, text=True, timeout=120)
            self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
            self.assertIn(f"done: step {STEPS}", run.stdout)


if __name__ == "__main__":
    unittest.main()
