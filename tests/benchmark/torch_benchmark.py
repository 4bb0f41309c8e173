"""Lockstep beside PyTorch's DistributedDataParallel over gloo, the same models.

    /usr/bin/python3 tests/benchmark/torch_benchmark.py build/release
        [--rounds N] [--steps N] [--cases NAMES] [--columns NAMES] [--kills N]
        [--keep_gradients]

Each case runs on both sides in turn, ROUNDS times, with two workers on loopback
and one thread each (`straggler`: four workers that sleep 20 ms a pass, one of
them 80 ms, of which a step of Lockstep needs three); a figure is the median of
the rounds' median steps, in milliseconds, and the ratio is that of the two
sides of one round. Rank 0 of DDP applies SGD as every rank does; Lockstep's
server applies the same rule.

A pair of columns has a way in which Lockstep trains, in milliseconds and as a
ratio to DDP:

    grpc            two workers and a server
    shared          the same with shared memory
    mirrors         MULTI_WORKER_MIRRORED: as on two hosts. Each worker is in a
                    space of process numbers of its own, so that it shares
                    memory with its own mirror alone
    mirrors_shared  the same with both workers on one host
    early           as grpc, with passes that begin early (`early=True`)

Where torchft is installed (it needs PyTorch 2.7), a column has its
DistributedDataParallel over gloo, with a lighthouse server in this process and
a replica group for each worker; without it the first line says so. It follows
torchft's train_ddp.py; the test has a stand-in with the same calls.

`float` compares something else: one worker in Python that computes nothing, with
numpy, beside the worker of `step_benchmark`, which runs the loop of the built-in
worker in C++ on the same variable, in jobs that are otherwise the same. The
difference is what Python costs in a step.

`killed` has no other side (killed_torch_worker.py).
"""

import argparse
import contextlib
import functools
import importlib.util
import os
import socket
import statistics
import subprocess
import sys
import tempfile

from killed_torch_worker import measure_killed

KEEP = "0"  # 1: keep_gradients=True
ALL_COLUMNS = ["grpc", "shared", "mirrors", "mirrors_shared", "early"]
COLUMNS = ["grpc", "shared"]  # to measure
HERE = os.path.dirname(os.path.abspath(__file__))

MODELS = """
import os, statistics, sys, time
import torch
import torch.nn.functional as F
torch.set_num_threads(1)
torch.manual_seed(0)
case, steps = os.environ["CASE"], int(os.environ["STEPS"])

class Free(torch.nn.Module):
    # 100 MB whose gradient is the tensor itself, nearly for nothing.
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.zeros(25_000_000))
    def forward(self, x):
        return CostsNothing.apply(self.w)

class CostsNothing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, w):
        ctx.like = w
        return w[0] * 1
    @staticmethod
    def backward(ctx, grad):
        return ONES[: ctx.like.numel()].view_as(ctx.like)

class Transformer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(256, 384)
        layer = torch.nn.TransformerEncoderLayer(384, 6, 1536, 0.0,
                                                 batch_first=True)
        self.body = torch.nn.TransformerEncoder(layer, 5)
        self.head = torch.nn.Linear(384, 256)
    def forward(self, x):
        return self.head(self.body(self.embed(x)))

if case == "tensor":
    model = Free()
    ONES = torch.ones(25_000_000)
    data = torch.zeros(8)
    loss_of = lambda: model(data)
elif case in ("mlp", "straggler"):
    model = torch.nn.Sequential(
        torch.nn.Linear(784, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
    x, y = torch.randn(100, 784), torch.randint(0, 10, (100,))
    pause = float(os.environ["PAUSE"])
    def loss_of():
        time.sleep(pause)
        return F.cross_entropy(model(x), y)
else:
    model = Transformer()
    x = torch.randint(0, 256, (2, 32))
    loss_of = lambda: F.cross_entropy(model(x).transpose(1, 2), x)

def report(times):
    times = times[len(times) // 5:]
    print("MEDIAN", 1e3 * statistics.median(times), flush=True)
"""

DDP = MODELS + """
import torch.distributed
torch.distributed.init_process_group("gloo")
ddp = torch.nn.parallel.DistributedDataParallel(
    model, gradient_as_bucket_view=True)
model_, model = model, ddp
optimizer = torch.optim.SGD(model_.parameters(), lr=1e-4)
times = []
for _ in range(steps):
    begin = time.perf_counter()
    optimizer.zero_grad(set_to_none=False)
    loss_of().backward()
    optimizer.step()
    times.append(time.perf_counter() - begin)
report(times)
"""

# Each replica group has one process, with the store that torchrun would start.
TORCHFT = MODELS + """
from datetime import timedelta
import torch.distributed
import torchft
store = torch.distributed.TCPStore("localhost", 0, is_master=True,
                                   wait_for_workers=False)
def state_dict():
    return {"model": model.state_dict(), "optim": optimizer.state_dict()}
def load_state_dict(state):
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optim"])
manager = torchft.Manager(
    pg=torchft.ProcessGroupGloo(timeout=timedelta(seconds=30)),
    min_replica_size=int(os.environ["NUM_REPLICA_GROUPS"]),
    load_state_dict=load_state_dict, state_dict=state_dict,
    replica_id="torch_benchmark_" + os.environ["REPLICA_GROUP_ID"],
    timeout=timedelta(seconds=30), store_addr="localhost",
    store_port=store.port, rank=0, world_size=1)
model = torchft.DistributedDataParallel(manager, model)
optimizer = torchft.Optimizer(
    manager, torch.optim.SGD(model.parameters(), lr=1e-4))
times = []
while manager.current_step() < steps:
    begin = time.perf_counter()
    optimizer.zero_grad()
    loss_of().backward()
    optimizer.step()
    times.append(time.perf_counter() - begin)
report(times)
manager.shutdown(wait=False)
"""

LOCKSTEP = MODELS + """
import lockstep.torch
worker = lockstep.torch.Worker(model, keep_gradients=os.environ["KEEP"] == "1",
                               shared_memory=os.environ["SHARED"] == "1",
                               early=os.environ["EARLY"] == "1")
times, begin = [], None
for step in worker.steps():
    now = time.perf_counter()
    if begin is not None:
        times.append(now - begin)
    begin = now
    step.backward(loss_of())
report(times)
"""


# One float with numpy: what a step costs besides its computation.
FLOAT = """
import os, statistics, time
import lockstep, numpy as np
worker = lockstep.Worker({"w": np.ones(1, np.float32)})
gradient = {"w": np.ones(1, np.float32)}
times, begin = [], None
for step in worker.steps():
    now = time.perf_counter()
    if begin is not None:
        times.append(now - begin)
    begin = now
    step.push(gradient)
times = times[int(os.environ["WARMUP"]):]
print("MEDIAN", 1e3 * statistics.median(times), flush=True)
"""
FLOAT_WARMUP = 100  # steps


def median_of(text):
    for line in text.splitlines():
        if line.startswith("MEDIAN "):
            return float(line.split()[1])
    raise RuntimeError("no result:\n" + text[-2000:])


def workers_of(case):
    """Returns the seconds that each worker sleeps in a pass."""
    return [0.02, 0.02, 0.02, 0.08] if case == "straggler" else [0, 0]


def run_ranks(program, case, steps, environment):
    """Returns the longest of the processes' medians.

    `environment` makes the variables of one process from its number and the
    number of processes.
    """
    pauses = workers_of(case)
    ranks = []
    with contextlib.ExitStack() as files:
        # A process whose pipe is full would wait, and all others for it.
        outputs = [files.enter_context(tempfile.TemporaryFile("w+"))
                   for _ in pauses]
        for rank, pause in enumerate(pauses):
            env = dict(os.environ, CASE=case, STEPS=str(steps),
                       PAUSE=str(pause), OMP_NUM_THREADS="1",
                       **environment(rank, len(pauses)))
            ranks.append(subprocess.Popen([sys.executable, "-c", program],
                                          env=env, stdout=outputs[rank],
                                          stderr=subprocess.STDOUT))
        try:
            for rank in ranks:
                rank.wait(timeout=600)
        finally:
            for rank in ranks:
                rank.kill()
        texts = []
        for output in outputs:
            output.seek(0)
            texts.append(output.read())
    return max(map(median_of, texts))


def run_ddp(case, steps):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    return run_ranks(DDP, case, steps, lambda rank, count: {
        "RANK": str(rank), "WORLD_SIZE": str(count),
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)})


def has_torchft():
    return importlib.util.find_spec("torchft") is not None


def run_torchft(case, steps):
    # It says in a line what it does in every step.
    os.environ.setdefault("RUST_LOG", "error")
    from torchft.coordination import LighthouseServer
    lighthouse = LighthouseServer(bind="[::]:0",
                                  min_replicas=len(workers_of(case)))
    try:
        return run_ranks(TORCHFT, case, steps, lambda rank, count: {
            "REPLICA_GROUP_ID": str(rank), "NUM_REPLICA_GROUPS": str(count),
            "TORCHFT_LIGHTHOUSE": lighthouse.address()})
    finally:
        lighthouse.shutdown()


def lockstep_job(case, steps, mirrors):
    from local_job import LocalJob
    workers = len(workers_of(case))
    sets = [f"train_steps={steps}", "learning_rate=1e-4",
            "checkpoint.directory="]
    if mirrors:
        return LocalJob(workers=workers, servers=0, chief="worker", sets=[
            *sets, "strategy.kind=MULTI_WORKER_MIRRORED"])
    return LocalJob(workers=workers, sets=[
        *sets, f"replicas_to_aggregate={needed_of(case)}",
        f"total_num_replicas={workers}"])


def needed_of(case):
    """Returns the number of gradients that a step needs."""
    return 3 if case == "straggler" else 2


def own_host():
    """A command's first words: alone in a space of process numbers."""
    return ["unshare", "--user", "--map-root-user", "--pid", "--fork",
            "--kill-child", "--mount-proc"]


def run_lockstep(case, steps, column):
    mirrors = column.startswith("mirrors")
    with lockstep_job(case, steps, mirrors) as job:
        with open(job.path("program.py"), "w") as program:
            program.write(LOCKSTEP)
        for i, pause in enumerate(workers_of(case)):
            job.start("worker", i,
                      (own_host() if column == "mirrors" else []) +
                      [sys.executable, program.name],
                      CASE=case, STEPS=str(steps), KEEP=KEEP,
                      SHARED="1" if mirrors or column == "shared" else "0",
                      EARLY="1" if column == "early" else "0",
                      OMP_NUM_THREADS="1", PAUSE=str(pause))
        for i in range(len(workers_of(case))):
            job.wait("worker", i, timeout=600)
        # A backup's passes are not steps.
        return max(median_of(job.log("worker", i))
                   for i in range(needed_of(case)))


def float_job(steps):
    """A job for one float, with the optimizer that step_benchmark checks."""
    from local_job import LocalJob
    # The worker of step_benchmark counts some steps before and after.
    return LocalJob(sets=[f"train_steps={FLOAT_WARMUP + steps + 3}",
                          "learning_rate=0.01", "optimizer.kind=MOMENTUM",
                          "optimizer.momentum=0.9", "checkpoint.directory="])


def run_float(steps):
    with float_job(steps) as job:
        job.start_worker(0, FLOAT, WARMUP=str(FLOAT_WARMUP))
        job.wait("worker", 0, timeout=600)
        return median_of(job.log("worker"))


def run_float_in_cpp(steps):
    with float_job(steps) as job:
        program = os.path.join(os.environ["LOCKSTEP_BIN"], "step_benchmark")
        job.start("worker", 0,
                  [program, "--role", "worker", "--model", "scalar",
                   "--bytes", "4", "--warmup", str(FLOAT_WARMUP),
                   "--steps", str(steps), "--record", job.path("record")])
        if job.wait("worker", 0, timeout=600) != 0:
            raise RuntimeError("step_benchmark:\n" + job.log("worker")[-2000:])
        return median_of_record(job.path("record"))


def median_of_record(path):
    """Milliseconds of a step in a file that step_samples.h describes."""
    with open(path) as f:
        samples = [line.split() for line in f.readlines()[1:]]
    return statistics.median(int(total) / int(steps) / 1e6
                             for total, *_, steps in samples)


def measure_float(rounds, steps):
    pairs = [(run_float(steps), run_float_in_cpp(steps)) for _ in range(rounds)]
    python, cpp = (statistics.median(side) for side in zip(*pairs))
    more = statistics.median(python - cpp for python, cpp in pairs)
    print(f"{'float':12} python {python:.3f} ms, C++ {cpp:.3f} ms, "
          f"difference {more:.3f} ms", flush=True)


def measure_model(case, rounds, steps):
    steps = steps or {"mlp": 400, "straggler": 100}.get(case, 30)
    sides = {"ddp": run_ddp}
    if has_torchft():
        sides["torchft"] = run_torchft
    for column in columns_of(case):
        sides[column] = functools.partial(run_lockstep, column=column)
    figures = {name: [] for name in sides}
    for _ in range(rounds):
        for name, side in sides.items():
            figures[name].append(side(case, steps))
    text = f"{case:12} {statistics.median(figures['ddp']):9.2f}"
    for name in ratio_columns():
        text += " " + ratio_text(name, figures["ddp"], figures.get(name))
    print(text, flush=True)


def ratio_text(name, ddp, figures):
    width = len(head_of(name))
    if figures is None:
        return f"{'':{width}}"
    ratio = statistics.median(mine / its for mine, its in zip(figures, ddp))
    return f"{statistics.median(figures):{width - 7}.2f} {ratio:6.2f}"


def ratio_columns():
    return (["torchft"] if has_torchft() else []) + COLUMNS


def head_of(name):
    return f"{name + ' ms':>10} {'ratio':>6}"


def print_head():
    if not has_torchft():
        print("torchft: not installed")
    print(f"{'case':12} {'ddp ms':>9}",
          *(head_of(name) for name in ratio_columns()), flush=True)


def columns_of(case):
    """Those that the case has: mirrors wait for all workers."""
    return [column for column in COLUMNS
            if case != "straggler" or not column.startswith("mirrors")]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument(
        "--cases", default="float,tensor,mlp,transformer,straggler,killed")
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--keep_gradients", action="store_true",
                        help="the default of lockstep.torch.Worker")
    parser.add_argument("--columns", default=",".join(COLUMNS),
                        help="ways of Lockstep, see above (default: %(default)s)")
    args = parser.parse_args()
    COLUMNS[:] = args.columns.split(",")
    for column in COLUMNS:
        if column not in ALL_COLUMNS:
            parser.error(f'there is no column "{column}"; there are '
                         + ", ".join(ALL_COLUMNS))
    global KEEP
    KEEP = "1" if args.keep_gradients else "0"
    build = os.path.abspath(args.build)
    os.environ["LOCKSTEP_BIN"] = os.path.join(build, "bin")
    paths = [os.path.join(build, "python"),
             os.path.join(HERE, "..", "e2e", "python")]
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, [*paths, os.environ.get("PYTHONPATH")]))
    sys.path[:0] = paths
    print_head()
    for case in args.cases.split(","):
        if case == "float":
            measure_float(args.rounds, args.steps or 2000)
        elif case == "killed":
            measure_killed(args.kills)
        else:
            measure_model(case, args.rounds, args.steps)


if __name__ == "__main__":
    main()
