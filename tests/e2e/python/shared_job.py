"""Jobs with shared steps, for tests: workers write a line for each pass."""

import os
import time

from local_job import LocalJob

STEPS = 80
HOLD_AT = 30
NUMBERS = 6  # micro-batches of a step
BATCH = 24

# Programs call this in each pass. Passes of the step HOLD_AT wait as long as
# there is a file HOLD. A line is one write: a kill leaves all of it or none.
TELL = """
import os
import sys
import time

def tell(step, rows):
    words = ["pass", step.number, step.share, step.seed, *rows]
    sys.stdout.write(" ".join(map(str, words)) + "\\n")
    sys.stdout.flush()
    while (step.number == int(os.environ["HOLD_AT"])
           and os.path.exists(os.environ["HOLD"])):
        time.sleep(0.005)
"""


def passes_of(log):
    """A dict from (step, number) to the seed and the rows of the passes.

    Raises: AssertionError: two workers had other rows for one number.
    """
    passes = {}
    for line in log.splitlines():
        if line.startswith("pass "):
            step, number, *rest = map(int, line.split()[1:])
            if step == STEPS:  # it began before the end of the job was known
                continue
            if passes.setdefault((step, number), rest) != rest:
                raise AssertionError(f"pass {step}, {number} differs: {rest}, "
                                     f"and before {passes[step, number]}")
    return passes


def _wait_for(condition, process):
    end = time.monotonic() + 60
    while not condition():
        if time.monotonic() > end or process.poll() is not None:
            raise AssertionError("the worker computes no pass again")
        time.sleep(0.01)


def train(case, program, workers, sets=(), kills=None, read=None,
          job_class=LocalJob):
    """Trains to the end.

    Each worker computes at least one pass of step HOLD_AT; the worker `kills`
    is killed in it, and computes one again.

    Returns: the bytes of the last checkpoint's files; the passes of all
      workers; what `read` returns for the directory of checkpoints.
    """
    sets = ["work=SHARED", f"micro_batches_per_step={NUMBERS}",
            f"batch_size={BATCH}", f"train_steps={STEPS}",
            "max_part_bytes=64", *sets]
    with job_class(workers=workers, servers=2, sets=sets) as job:
        hold = {"HOLD": job.path("hold"), "HOLD_AT": str(HOLD_AT)}
        with open(hold["HOLD"], "w"):
            pass
        for i in range(workers):
            job.start_worker(i, TELL + program, **hold)
        held = f"pass {HOLD_AT} "
        for i in range(workers):
            job.wait_for_log(held, index=i)
        if kills is not None:
            job.kill("worker", kills)
            before = job.log("worker", kills).count(held)
            process = job.start_worker(kills, TELL + program, **hold)
            _wait_for(lambda: job.log("worker", kills).count(held) > before,
                      process)
        os.remove(hold["HOLD"])
        for i in range(workers):
            case.assertEqual(job.wait("worker", i), 0,
                             job.log("worker", i)[-2000:])
        case.assertEqual(job.wait("chief"), 0, job.log("chief")[-2000:])
        folder = os.path.join(job.path("checkpoints"), f"step-{STEPS:08}")
        files = []
        for name in ("model.safetensors", "optimizer.safetensors"):
            with open(os.path.join(folder, name), "rb") as file:
                files.append(file.read())
        logs = "\n".join(job.log("worker", i) for i in range(workers))
        return (files, passes_of(logs),
                read and read(job.path("checkpoints")))
