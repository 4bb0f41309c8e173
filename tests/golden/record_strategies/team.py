"""A team executes scenarios in one process for each worker."""

import json
import os
import pathlib
import select
import socket
import subprocess
import sys
import time

SECONDS = 300  # for one scenario; TensorFlow takes about one
LAST_SECONDS = 20  # for the next worker, after one has answered a fatal one
PATIENCE = 5  # seconds, until an idle process that must end is killed


class Silent(Exception):
    """A worker has not answered in time, or has died."""


def free_ports(count):
    """Ports that nobody had a moment ago."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


class Team:
    """The processes of one topology, which outlive scenarios."""

    def __init__(self, kind, topology):
        count = topology["workers"]
        tasks = [("worker", i) for i in range(count)]
        if topology.get("chief"):
            tasks = [("chief", 0)] + tasks[:-1]
        addresses = ["127.0.0.1:%d" % port for port in free_ports(count)]
        cluster = {}
        for (job, _), address in zip(tasks, addresses):
            cluster.setdefault(job, []).append(address)
        self.processes = []
        for worker, (job, index) in enumerate(tasks):
            environment = dict(
                os.environ,
                PYTHONPATH=str(pathlib.Path(__file__).parent.parent))
            environment.pop("TF_CONFIG", None)
            if count > 1:
                environment["TF_CONFIG"] = json.dumps(
                    {"cluster": cluster, "task": {"type": job,
                                                  "index": index}})
            self.processes.append(subprocess.Popen(
                [sys.executable, "-m", "record_strategies.member", kind,
                 json.dumps(topology), str(worker)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                env=environment))

    def execute(self, scenario):
        """For each operation the list of the workers' answers.

        A worker that is silent has None for all of its operations in a fatal
        scenario; in another one it raises Silent.
        """
        line = (json.dumps(scenario) + "\n").encode()
        for process in self.processes:
            process.stdin.write(line)
            process.stdin.flush()
        until = time.monotonic() + SECONDS
        answers = []
        for process in self.processes:
            answers.append(self._answer(process, until, scenario))
            if scenario.get("fatal"):
                # The others notice the failure when this one is gone, or never.
                process.stdin.close()
                until = min(until, time.monotonic() + LAST_SECONDS)
        return list(zip(*answers))

    def _answer(self, process, until, scenario):
        left = max(0, until - time.monotonic())
        ready = select.select([process.stdout], [], [], left)[0]
        line = process.stdout.readline() if ready else b""
        if line:
            return json.loads(line)
        if scenario.get("fatal"):
            return [None] * len(scenario["ops"])
        raise Silent("a worker of %s is silent" % scenario["name"])

    def close(self):
        """Ends the processes, which then remove their temporary files."""
        for process in self.processes:
            process.stdin.close()
        until = time.monotonic() + PATIENCE
        for process in self.processes:
            try:
                process.wait(max(0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()


def joined(entries):
    """The `result` of a trace: an entry for each worker, or for all."""
    entries = list(entries)
    if len(entries) > 1 and all(entry == entries[0] for entry in entries):
        return {"all_workers": entries[0]}
    return entries
