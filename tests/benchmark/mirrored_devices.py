#!/usr/bin/env python3
"""Times a step of MIRRORED with two CPU devices next to the bare passes, in turn.

    python3 tests/benchmark/mirrored_devices.py [--build build/release]
        [--rounds 5] [--steps 150] [--batch 128]

The job is a `lockstep run` of an MLP with 1024 and 1024 units on Fashion-MNIST
with replicas_per_worker: 2. The bare passes are two processes of
model_benchmark with a thread each, which compute the same batches side by side;
the update is the server's kernel of Adam over as many variables, from
kernel_benchmark. Prints the medians of both and of the rounds' ratios.
"""

import argparse
import json
import pathlib
import re
import socket
import statistics
import subprocess
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
JOB = ROOT / "deploy/examples/jobs/fashion_mnist/job.textproto"
UNITS = ["1024", "1024"]
WARM_UP = 20  # steps


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def step_now(url):
    """The global step, or -1 while no page is served."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return json.load(answer)["global_step"]
    except (OSError, KeyError):
        return -1


def step_ms(build, batch, steps):
    port = free_port()
    url = f"http://127.0.0.1:{port}/status.json"
    with tempfile.TemporaryDirectory() as directory:
        settings = {"strategy.kind": "MIRRORED", "strategy.replicas_per_worker": 2,
                    "replicas_to_aggregate": 0, "total_num_replicas": 0,
                    "model.hidden_units": ",".join(UNITS), "batch_size": batch,
                    "train_steps": 1000000, "checkpoint.every_steps": 1000000,
                    "checkpoint.directory": directory}
        command = [build / "bin/lockstep", "run", "--job", JOB,
                   f"--status_address=127.0.0.1:{port}"]
        for name, value in settings.items():
            command += ["--set", f"{name}={value}"]
        job = subprocess.Popen(command, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
        try:
            while (first := step_now(url)) < WARM_UP:
                assert job.poll() is None, f"the job ended: {command}"
                time.sleep(0.05)
            began = time.monotonic()
            while (last := step_now(url)) < first + steps:
                assert job.poll() is None, f"the job ended: {command}"
                time.sleep(0.2)
            return (time.monotonic() - began) * 1000 / (last - first)
        finally:
            job.terminate()
            job.wait()


def update_ms(build):
    """Of a model of about as many MiB, from the gradients of two devices."""
    sides = [28 * 28, *map(int, UNITS), 10]
    floats = sum(a * b + b for a, b in zip(sides, sides[1:]))
    printed = subprocess.run(
        [build / "bin/kernel_benchmark", "--megabytes",
         str(round(floats * 4 / 2**20)),
         "--benchmark_filter=^adam/gradients:2"],
        check=True, text=True, capture_output=True).stdout
    return float(re.search(r"_median +(\d+) ns", printed)[1]) / 1e6


class BarePasses:
    def __init__(self, build, batch):
        command = [build / "bin/model_benchmark", "--kind", "mlp", "--batch",
                   str(batch), "--image_height", "28", "--image_width", "28",
                   "--channels", "1", "--classes", "10", "--threads", "1",
                   "--hidden_units", *UNITS]
        self.programs = [subprocess.Popen(command, text=True,
                                          stdin=subprocess.PIPE,
                                          stdout=subprocess.PIPE)
                         for _ in range(2)]
        for program in self.programs:
            program.stdout.readline()  # the backend's name

    def pass_ms(self, count):
        for program in self.programs:
            print(count, file=program.stdin, flush=True)
        # A step waits for the slower one.
        return max(float(program.stdout.readline())
                   for program in self.programs)

    def end(self):
        for program in self.programs:
            program.stdin.close()
            program.wait()


def main():
    flags = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--build", type=pathlib.Path,
                       default=ROOT / "build/release")
    flags.add_argument("--rounds", type=int, default=5)
    flags.add_argument("--steps", type=int, default=150)
    flags.add_argument("--batch", type=int, default=128)
    args = flags.parse_args()
    bare = BarePasses(args.build, args.batch)
    update = update_ms(args.build)
    rounds = []
    for _ in range(args.rounds):
        passes = bare.pass_ms(args.steps // 2)
        step = step_ms(args.build, args.batch, args.steps)
        passes = (passes + bare.pass_ms(args.steps // 2)) / 2 + update
        rounds.append((step, passes))
        print(f"step {step:.1f} ms, bare passes and update ({update:.1f}) "
              f"{passes:.1f} ms: {step / passes:.2f}", flush=True)
    bare.end()
    steps, passes = (statistics.median(each) for each in zip(*rounds))
    ratio = statistics.median(step / each for step, each in rounds)
    print(f"medians: step {steps:.1f} ms, bare passes and update "
          f"{passes:.1f} ms, "
          f"ratio {ratio:.2f} (goal 1.15)")


if __name__ == "__main__":
    main()
