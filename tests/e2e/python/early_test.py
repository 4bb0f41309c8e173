"""Steps that begin while the gradients of the step before are on their way."""

import random
import time
import unittest

from local_job import LocalJob, TorchJob
from lockstep import checkpoint
from needs import need

torch = need("torch")
import numpy as np

STEPS = 60

NUMPY = """
import numpy as np
import lockstep
rng = np.random.default_rng(1)
model = {name: rng.standard_normal((64, 64)).astype(np.float32)
         for name in "abc"}
worker = lockstep.Worker(model, early=EARLY)
early = passes = 0
for step in worker.steps():
    early += worker._early
    passes += 1
    x = np.full((4, 64), 0.01 * (step.number % 7 + worker.index), np.float32)
    for name in "abc":
        x = np.tanh(x @ step.values[name])
    gradients = {name: np.float32(0.1) * step.values[name] + x.mean()
                 for name in "abc"}
    if step.number == 5:
        assert dict(step.values).keys() == model.keys()
        try:
            step.values["a"][0, 0] = 1
            raise AssertionError("an array could be written to")
        except ValueError:
            pass
    if step.number == 8:
        del gradients["b"]
    step.push(gradients)
print("early", early, "of", passes)
"""

# Attention uses the parameters of a module below it without its forward, and
# weight_norm those of its module before that.
MODEL = """
import torch
torch.set_num_threads(1)
torch.manual_seed(0)
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.utils.weight_norm(torch.nn.Linear(16, 32))
        self.attention = torch.nn.MultiheadAttention(32, 2)
        self.norm = torch.nn.BatchNorm1d(32)
        self.twice = torch.nn.Linear(32, 32)
        self.unused = torch.nn.Linear(3, 3)
        self.outer = torch.nn.Linear(32, 4)
    def forward(self, x):
        x = self.inner(x).relu()
        x = x + self.attention(x[:, None], x[:, None], x[:, None])[0][:, 0]
        return self.outer(self.twice(self.twice(self.norm(x)).relu()).relu())
model = Model()
generator = torch.Generator().manual_seed(1)
x = torch.randn(64, 16, generator=generator)
y = torch.randint(0, 4, (64,), generator=generator)
def loss_of(rows):
    return torch.nn.functional.cross_entropy(model(x[rows]), y[rows])
"""

TORCH = MODEL + """
import time
import lockstep.torch
worker = lockstep.torch.Worker(model, early=EARLY)
early = passes = 0
for step in worker.steps():
    early += worker._early
    passes += 1
    if step.number % 10 == 0:
        print("step", step.number, flush=True)
    time.sleep(PAUSE)
    step.backward(loss_of(step.indices(len(x))))
print("early", early, "of", passes)
"""

# The forward of a module is not called: its parameters are read.
OUTSIDE = MODEL + """
import lockstep.torch
worker = lockstep.torch.Worker(model, early=True)
for step in worker.steps():
    if AWAITS:
        step.await_values()
    loss = loss_of(step.indices(len(x)))
    step.backward(loss + 0.01 * model.outer.bias.square().sum()
                  + model.unused.bias.sum())
"""

# An exception of a signal's handler may come anywhere: before and after values
# have arrived, and when the wait for the token has begun.
INTERRUPTED = MODEL + """
import lockstep.torch
class Stop(Exception):
    pass
worker = lockstep.torch.Worker(model, early=True)
native = worker._loop.native
await_values, begin_gradients = native.await_values, native.begin_gradients
calls, stops, done = [0, 0], 0, False
def awaits(*given):
    calls[0] += 1
    if calls[0] == 3:
        raise Stop
    await_values(*given)
    if calls[0] in (5, 12):
        raise Stop
def begins(timeout):
    calls[1] += 1
    if calls[1] % 10 == 3:
        begin_gradients(0.0)
        raise Stop
    return begin_gradients(timeout)
native.await_values, native.begin_gradients = awaits, begins
while not done:
    try:
        for step in worker.steps():
            loss = loss_of(step.indices(len(x)))
            if step.number % 2:
                worker._settle()  # outside of autograd, and again in backward
            step.backward(loss)
        done = True
    except Stop:
        stops += 1
assert stops > 6, stops
"""


# Two layers, and a module whose buffer a method changes that is no forward.
SMALL = """
import copy, io, os, signal, threading, time
import torch
torch.set_num_threads(1)
torch.manual_seed(0)
class Mean(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(()))
    def note(self, x):
        self.mean.add_(0.1 * (x.detach().mean() - self.mean))
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(4, 4), torch.nn.Linear(4, 2)
        self.mean = Mean()
    def forward(self, x):
        return self.last(self.first(x).relu())
model, x = Model(), torch.ones(3, 4)
import lockstep.torch
worker = lockstep.torch.Worker(model, early=True)
def early_step():
    for step in worker.steps():
        if worker._early:
            return step
        step.backward(model(x).sum())
"""

COPIES = SMALL + """
step = early_step()
missing = set(worker._values.missing)
assert len(missing) == 4, missing
torch.save(model, io.BytesIO())
copied = copy.deepcopy(model)
scripted = torch.jit.script(model)
copied(x)
assert worker._values.missing == missing, worker._values.missing
step.backward(model(x).sum())
for step in worker.steps():
    step.backward(model(x).sum())
"""

# As torch.nn.DataParallel: the copies run, the parameters are read.
REPLICAS = SMALL + """
def replica(module):
    made = module._replicate_for_data_parallel()
    for key, p in module._parameters.items():
        made.__dict__[key] = p * 1
    for key, each in module._modules.items():
        made._modules[key] = replica(each)
    return made
for step in worker.steps():
    step.backward(replica(model)(x).sum())
"""

COMPILED = SMALL + """
compiled = torch.compile(model, backend="aot_eager")
early = 0
for step in worker.steps():
    early += worker._early
    step.backward(compiled(x).sum())
assert early > 4, early
"""

CLOSED = SMALL + """
early_step()
assert worker._values.missing
worker.close()
assert model(x).shape == (3, 2)
"""

BUFFER = SMALL + """
for step in worker.steps():
    if AWAITS:
        step.await_values()
    model.mean.note(x)
    step.backward(model(x).sum())
"""

PUSHES_AGAIN = SMALL + """
class Stop(Exception):
    pass
native = worker._loop.native
begins, stops = native.begin_gradients, [Stop(), Stop()]
def begin_gradients(timeout):
    if stops:
        raise stops.pop()
    return begins(timeout)
native.begin_gradients = begin_gradients
for step in worker.steps():
    model(x).sum().backward()
    while True:
        try:
            step.push()
            break
        except Stop:
            pass
assert not stops
"""

# For a GPU the wait is in autograd's thread, and the main one hears of no
# signal before it ends.
CTRL_C = SMALL + """
step = early_step()
ended = []
def settle():
    try:
        worker._settle()
    except Exception as error:
        ended.append(type(error).__name__)
thread = threading.Thread(target=settle)
thread.start()
print("waits", flush=True)
while thread.is_alive():
    try:  # again: the thread may not have waited yet
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1)
    except KeyboardInterrupt:
        pass
    thread.join(1)
assert ended == ["Unwanted"], ended
print("ended", flush=True)
os._exit(0)
"""

SLOW = SMALL + """
import time
for step in worker.steps():
    time.sleep(1000)
"""


def tensors_of(job):
    step, tensors = checkpoint.read(job.path("checkpoints"))
    assert step == STEPS, step
    return {name: np.array(tensor[2]) for name, tensor in tensors.items()}


class EarlyTest(unittest.TestCase):

    undisturbed = None

    def train(self, program, kind=TorchJob, early=True, pause=0, disturb=None,
              sets=(), **more):
        program = f"EARLY, PAUSE = {early}, {pause}\n{program}"
        with kind(**{"workers": 2, "servers": 2, **more}, sets=[
                f"train_steps={STEPS}", "learning_rate=0.1",
                "max_part_bytes=2048", *sets]) as job:
            for i in range(2):
                job.start_worker(i, program)
            if disturb is not None:
                disturb(job)
            for i in range(2):
                self.assertEqual(job.wait("worker", i), 0,
                                 job.log("worker", i)[-3000:])
            if "chief" in job.cluster:
                self.assertEqual(job.wait("chief"), 0, job.log("chief")[-3000:])
            return tensors_of(job), job.log("worker", 0)

    def check_same(self, first, second):
        self.assertEqual(first.keys(), second.keys())
        for name, tensor in first.items():
            np.testing.assert_array_equal(tensor, second[name], name)

    def check_early(self, log, early):
        count, passes = log.split("early ")[1].split(" of ")
        if early:
            # The first step has no pushes before it, nor has the last, which
            # may be the one behind the end of training.
            self.assertGreater(int(count), int(passes) - 4)
        else:
            self.assertEqual(int(count), 0)

    def test_numpy_programs_have_the_same_bits(self):
        plain, log = self.train(NUMPY, LocalJob, early=False)
        self.check_early(log, False)
        early, log = self.train(NUMPY, LocalJob)
        self.check_early(log, True)
        self.check_same(plain, early)

    def plain(self):
        if EarlyTest.undisturbed is None:
            tensors, log = self.train(TORCH, early=False)
            self.check_early(log, False)
            EarlyTest.undisturbed = tensors
        return EarlyTest.undisturbed

    def test_torch_programs_have_the_same_bits(self):
        early, log = self.train(TORCH)
        self.check_early(log, True)
        self.check_same(self.plain(), early)

    def test_no_step_of_mirrors_begins_early(self):
        # Their pushes bring no values back.
        early, log = self.train(
            TORCH, servers=0, chief="worker",
            sets=["strategy.kind=MULTI_WORKER_MIRRORED"])
        self.check_early(log, False)
        self.check_same(self.plain(), early)

    def test_no_step_of_a_job_that_limits_means_begins_early(self):
        # The norm of a mean is known after the answers to pushes.
        limits = ["clipping.kind=MEAN_GLOBAL_NORM", "clipping.limit=0.05"]
        plain, _ = self.train(TORCH, early=False, sets=limits)
        limited, log = self.train(TORCH, sets=limits)
        self.check_early(log, False)
        self.check_same(plain, limited)

    def test_kills_change_no_bit(self):
        drawn = random.Random(7)
        pause = 0.05  # so that the job lasts until the last kill

        def disturb(job):
            for step, task, index in ((10, "worker", 1), (20, "ps", 0),
                                      (30, "chief", 0), (40, "worker", 0)):
                job.wait_for_log(f"step {step}\n")
                time.sleep(drawn.random() * 0.05)
                job.kill(task, index)
                if task == "worker":
                    job.start_worker(
                        index, f"EARLY, PAUSE = True, {pause}\n{TORCH}")
                elif task == "ps":
                    job.start_server(index)
                else:
                    job.start_chief()

        disturbed, _ = self.train(TORCH, pause=pause, disturb=disturb)
        self.check_same(self.plain(), disturbed)

    def test_exceptions_in_the_loop_lose_no_step(self):
        interrupted, _ = self.train(INTERRUPTED)
        self.check_same(self.plain(), interrupted)

    def test_a_parameter_that_is_read_elsewhere_must_be_awaited(self):
        with TorchJob(sets=[f"train_steps={STEPS}", "learning_rate=0.1",
                            "max_part_bytes=2048"]) as job:
            job.start_worker(0, f"AWAITS = False\n{OUTSIDE}")
            self.assertNotEqual(job.wait("worker"), 0)
            self.assertRegex(job.log("worker"),
                             r'parameter "(outer|unused).bias" was used outside')
        self.train(f"AWAITS = True\n{OUTSIDE}")

    def run_small(self, program, ends_well=True):
        with TorchJob(sets=["train_steps=8", "learning_rate=0.1"]) as job:
            job.start_worker(0, program)
            code = job.wait("worker")
            self.assertEqual(code == 0, ends_well, job.log("worker")[-3000:])
            return job.log("worker")

    def test_a_model_can_be_saved_copied_and_compiled(self):
        self.run_small(COPIES)

    @unittest.skipUnless(hasattr(torch, "compile"), "SKIPPED, NOTHING WAS "
                         "PROVED: PyTorch 1 has no torch.compile")
    def test_a_model_may_be_compiled_by_torch_compile(self):
        self.run_small(COMPILED)

    def test_values_are_not_taken_for_there_when_copies_of_a_module_run(self):
        self.assertIn("was used outside of its module's forward",
                      self.run_small(REPLICAS, ends_well=False))

    def test_a_model_can_be_used_when_its_worker_is_closed(self):
        self.run_small(CLOSED)

    def test_a_change_of_a_buffer_that_lacks_its_value_is_an_error(self):
        self.assertIn('buffer "mean.mean" was changed outside',
                      self.run_small(f"AWAITS = False\n{BUFFER}", ends_well=False))
        self.run_small(f"AWAITS = True\n{BUFFER}")

    def test_a_push_that_an_exception_ends_before_its_token_may_be_repeated(
            self):
        self.run_small(PUSHES_AGAIN)

    def test_ctrl_c_ends_the_wait_for_a_token_in_any_thread(self):
        with LocalJob(workers=2, sets=["learning_rate=0.1"]) as job:
            job.start_worker(0, CTRL_C)
            job.start_worker(1, SLOW)
            job.wait_for_log("waits")
            self.assertEqual(job.wait("worker", 0, timeout=60), 0,
                             job.log("worker", 0)[-3000:])


if __name__ == "__main__":
    unittest.main(verbosity=2)
