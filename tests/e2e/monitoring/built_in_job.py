"""A small job of the built-in programs, each with a status address."""

import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time
import urllib.request

from ports import Ports

PATIENCE = 90  # seconds
JOB = (pathlib.Path(__file__).parents[3] /
       "deploy/examples/jobs/fashion_mnist/job.textproto")


def wait_for(check, what):
    """Returns the first result of check() that is true."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        result = check()
        if result:
            return result
        time.sleep(0.1)
    raise AssertionError("waited in vain for " + what)


def get(url, host=None):
    request = urllib.request.Request(url)
    if host:
        request.add_header("Host", host)
    with urllib.request.urlopen(request, timeout=20) as answer:
        return answer.read().decode()


class BuiltInJob:
    """chief 0, ps 0, workers 0 and 1 and an evaluator, without certificates."""

    TASKS = [("ps", 0), ("chief", 0), ("worker", 0), ("worker", 1),
             ("evaluator", 0)]

    def __init__(self, programs, settings):
        self.programs = pathlib.Path(programs)
        self.folder = tempfile.TemporaryDirectory()
        self.logs = pathlib.Path(self.folder.name)
        self.settings = settings
        self.processes = {}
        self.ports = Ports()
        self.cluster = {}
        for task, _ in self.TASKS:
            self.cluster.setdefault(task, []).append(self.ports.address())

    def __enter__(self):
        for task in self.TASKS:
            self.start(*task)
        return self

    def __exit__(self, *error):
        if error[0]:
            for path in sorted(self.logs.glob("*.log")):
                print(f"--- {path.name}\n{path.read_text()[-2000:]}")
        for process in self.processes.values():
            process.send_signal(signal.SIGKILL)
            process.wait()
        self.ports.close()
        self.folder.cleanup()

    def start(self, task, index, status="127.0.0.1:0"):
        program = "worker" if task == "evaluator" else task
        command = [self.programs / ("ps_server" if task == "ps" else program),
                   "--exit_with_parent", f"--status_address={status}"]
        if task == "ps":
            state = self.logs / f"state-{index}"
            state.mkdir(mode=0o700, exist_ok=True)
            command.append(f"--state_dir={state}")
        if task == "chief":
            command.append(f"--job={JOB}")
            for setting in self.settings + [
                    "replicas_to_aggregate=1",
                    f"total_num_replicas={len(self.cluster['worker'])}",
                    f"checkpoint.directory={self.logs}/checkpoints"]:
                command += ["--set", setting]
        if task == "evaluator":
            command.append("--evaluate")
        environment = dict(os.environ, TF_CONFIG=json.dumps(
            {"cluster": self.cluster, "task": {"type": task, "index": index}}))
        with open(self.logs / f"{task}-{index}.log", "ab") as log:
            self.processes[task, index] = subprocess.Popen(
                command, env=environment, stdout=log, stderr=log)

    def status_address(self, task, index):
        log = self.logs / f"{task}-{index}.log"
        ports = wait_for(
            lambda: re.findall(r"status on port (\d+)", log.read_text()),
            f"the status address of {task} {index}")
        return f"127.0.0.1:{ports[-1]}"

    def status(self):
        return json.loads(
            get(f"http://{self.status_address('chief', 0)}/status.json"))

    def wait_for_step(self, step):
        wait_for(lambda: self.status()["global_step"] >= step, f"step {step}")
