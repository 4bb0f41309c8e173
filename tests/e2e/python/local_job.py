"""A job of real processes on loopback, for tests of the Python package."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

from forked_programs import ForkedProgram
from ports import Ports

BIN = os.environ["LOCKSTEP_BIN"]


class LocalJob:
    """Chief, servers, and workers that are Python programs.

    With ``chief="worker"`` or ``"hosted"`` there is no chief program, and
    without servers no ps: the workers' processes host these, the chief in that
    of worker 0, or of a chief task that computes, too.
    """

    forks = False

    def __init__(self, workers=1, servers=1, sets=(), evaluator=False,
                 state=True, chief_environment=None, chief="chief",
                 chief_folder=None):
        self.folder = tempfile.TemporaryDirectory(prefix="lockstep-python-")
        # Servers keep their state over their death.
        self.state = ["--state_dir", self.path("state") if state else ""]
        os.mkdir(self.path("state"), 0o700)
        self._ports = Ports()
        self.cluster = {
            "chief": [self._ports.address()],
            "ps": [self._ports.address() for _ in range(servers)],
            "worker": [self._ports.address() for _ in range(workers)],
        }
        self.hosted = {}
        if chief == "worker":
            del self.cluster["chief"]
        if not servers:
            del self.cluster["ps"]
        if evaluator:
            self.cluster["evaluator"] = [self._ports.address()]
        with open(self.path("job.textproto"), "w") as f:
            f.write('name: "python" model { kind: "external" } '
                    "train_steps: 20 batch_size: 8 "
                    "heartbeat_interval { nanos: 100000000 } "
                    'checkpoint { directory: "%s" }' % self.path("checkpoints"))
        self.sets = [a for s in sets for a in ("--set", s)]
        self.chief_folder = chief_folder  # where it runs; None: as the test
        self.tasks = {}
        if chief == "chief":
            self.start_chief(**(chief_environment or {}))
        else:
            self.hosted = {"LOCKSTEP_JOB": self.path("job.textproto"),
                           "LOCKSTEP_SET": "\n".join(sets),
                           "LOCKSTEP_STATE_DIR": self.path("state")}
        for i in range(servers):
            self.start_server(i)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def start_chief(self, **more):
        return self.start("chief", 0, [os.path.join(BIN, "chief"), "--job",
                                       self.path("job.textproto"), *self.sets],
                          **more)

    def start_server(self, index):
        return self.start("ps", index, [os.path.join(BIN, "ps_server"),
                                        *self.state])

    def start(self, task, index, command, **more):
        if task in ("chief", "ps"):
            command = command + ["--exit_with_parent"]
        with open(self.path(f"{task}-{index}.log"), "ab") as log:
            self.tasks[task, index] = subprocess.Popen(
                command, env=self.environment(task, index, **more), stdout=log,
                stderr=log,
                cwd=self.chief_folder if task == "chief" else None)
        return self.tasks[task, index]

    def environment(self, task, index, **more):
        config = {"cluster": self.cluster,
                  "task": {"type": task, "index": index}}
        return dict(os.environ, TF_CONFIG=json.dumps(config),
                    LOCKSTEP_EXIT_WITH_PARENT="1", PYTHONUNBUFFERED="1",
                    **{**self.hosted, **more})

    def add_worker(self):
        """Adds a worker to the cluster of tasks that start from now on."""
        self.cluster["worker"].append(self._ports.address())

    def start_worker(self, index, program, **more):
        """`program` is Python source, or the path of a file."""
        return self.start_program("worker", index, program, **more)

    def start_program(self, task, index, program, **more):
        if "\n" in program:
            path = self.path(f"{task}-{index}.py")
            with open(path, "w") as f:
                f.write(program)
            program = path
        if not self.forks:
            return self.start(task, index, [sys.executable, program], **more)
        self.tasks[task, index] = ForkedProgram(
            program, self.environment(task, index, **more),
            self.path(f"{task}-{index}.log"))
        return self.tasks[task, index]

    def wait(self, task, index=0, timeout=120):
        return self.tasks[task, index].wait(timeout)

    def log(self, task, index=0):
        with open(self.path(f"{task}-{index}.log"), errors="replace") as f:
            return f.read()

    def wait_for_log(self, text, task="worker", index=0, timeout=120):
        self.wait_for_pattern(re.escape(text), task, index, timeout)

    def wait_for_pattern(self, pattern, task="worker", index=0, timeout=120):
        """Waits until the log has the regular expression."""
        end = time.monotonic() + timeout
        while not re.search(pattern, self.log(task, index)):
            if time.monotonic() > end:
                raise AssertionError(
                    f"no {pattern!r} in {self.log(task, index)}")
            time.sleep(0.02)

    def stop(self, task, index=0):
        """Stops a program of the package with SIGSTOP."""
        process = self.tasks[task, index]
        process.send_signal(signal.SIGSTOP)
        # The signal stops one thread, and that one, once it is scheduled, the
        # others: until then these go on.
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)

    def kill(self, task, index=0):
        self.tasks[task, index].send_signal(signal.SIGKILL)
        self.tasks[task, index].wait()

    def close(self):
        for process in self.tasks.values():
            if process.poll() is None:
                process.kill()
                process.wait()
        self._ports.close()
        self.folder.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class TorchJob(LocalJob):
    """The same with programs that begin with torch imported."""

    forks = True


def rows_of(job, worker):
    """The examples of each step, from a worker's lines "rows STEP ROW..."."""
    rows = {}
    for line in job.log("worker", worker).splitlines():
        if line.startswith("rows "):
            number, *ids = map(int, line.split()[1:])
            rows[number] = ids
    return rows
