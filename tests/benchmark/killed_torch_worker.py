"""The case `killed` of torch_benchmark.py: what a job notices of a killed worker.

Three PyTorch workers of a small MLP, of which a step needs two. In turn each is
killed with SIGKILL and started again at once. If it has announced its gradient
of a step, the others wait for stall_timeout, or until it is back; else they do
not wait. For each kill:

- pause: the longest time that another worker spent between two steps, from the
  kill until a second after the first step of the worker that came back;
- before: the same for the same workers over the seconds before the kill, which
  shows how busy the machine is;
- rejoined: from the end of the worker's imports to its first step.
"""

import collections
import re
import statistics
import time

WORKERS = 3
CALM = 3  # seconds before each kill
AFTER = 1  # seconds after the first step of the worker that came back

# CLOCK_MONOTONIC is the same in all processes.
PROGRAM = """
import time
import torch
import torch.nn.functional as F
import lockstep.torch
print("IMPORTED", time.monotonic(), flush=True)
torch.set_num_threads(1)
torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Linear(784, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
x, y = torch.randn(100, 784), torch.randint(0, 10, (100,))
worker = lockstep.torch.Worker(model)
for step in worker.steps():
    print("STEP", step.number, time.monotonic(), flush=True)
    step.backward(F.cross_entropy(model(x), y))
"""

Kill = collections.namedtuple("Kill", "pause before rejoined")


def step_times(log):
    """The times at which a worker began its steps; repeated passes have none."""
    times, last = [], -1
    for number, moment in re.findall(r"^STEP (\d+) ([\d.]+)$", log, re.M):
        if int(number) > last:
            last = int(number)
            times.append(float(moment))
    return times


def longest_pause(times, begin, end):
    """The longest time between two steps, of those that [begin, end] touches.

    A step that is missing at either side counts until `begin` or `end`.
    """
    inside = [t for t in times if begin < t < end]
    before = max((t for t in times if t <= begin), default=begin)
    after = min((t for t in times if t >= end), default=end)
    moments = [before, *inside, after]
    return max(b - a for a, b in zip(moments, moments[1:]))


def wait_for(path, offset, pattern, timeout=120):
    """Returns the match of `pattern` in a file behind `offset`."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        with open(path, errors="replace") as f:
            f.seek(offset)
            text = f.read()
        if match := re.search(pattern, text, re.M):
            return match
        time.sleep(0.05)
    raise RuntimeError(f"no {pattern!r} in:\n{text[-2000:]}")


def kill_once(job, index):
    log = job.path(f"worker-{index}.log")
    time.sleep(CALM)
    killed = time.monotonic()
    job.kill("worker", index)
    with open(log) as f:
        offset = f.seek(0, 2)
    job.start_worker(index, PROGRAM, OMP_NUM_THREADS="1")
    imported = wait_for(log, offset, r"^IMPORTED ([\d.]+)$")
    first = wait_for(log, offset, r"^STEP \d+ ([\d.]+)$")
    back = float(first.group(1))
    end = back + AFTER
    time.sleep(max(0, end + AFTER - time.monotonic()))
    others = [step_times(job.log("worker", other))
              for other in range(WORKERS) if other != index]
    calm = [[t for t in times if t < killed] for times in others]
    return Kill(max(longest_pause(times, killed, end) for times in others),
                max(longest_pause(times, killed - CALM, killed)
                    for times in calm),
                back - float(imported.group(1)))


def run_kills(kills):
    from local_job import LocalJob
    with LocalJob(workers=WORKERS,
                  sets=["train_steps=100000000", "learning_rate=1e-4",
                        "replicas_to_aggregate=2",
                        f"total_num_replicas={WORKERS}",
                        "checkpoint.directory="]) as job:
        for index in range(WORKERS):
            job.start_worker(index, PROGRAM, OMP_NUM_THREADS="1")
        for index in range(WORKERS):
            wait_for(job.path(f"worker-{index}.log"), 0, r"^STEP \d\d\d+ ")
        return [kill_once(job, kill % WORKERS) for kill in range(kills)]


def measure_killed(kills):
    figures = run_kills(kills)
    for name in Kill._fields:
        values = [getattr(figure, name) for figure in figures]
        print(f"{'killed':12} {name:10} median {statistics.median(values):.3f} s, "
              f"max {max(values):.3f} s, {kills} kills", flush=True)
