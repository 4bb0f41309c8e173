"""How the values of a step come into the parameters of a PyTorch model."""

import unittest

from needs import need

torch = need("torch")

import lockstep.torch
from local_job import TorchJob

STEPS = 8

# One large parameter, the first weight, and small ones.
MODEL = """
import torch
torch.set_num_threads(1)
torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Linear(300, 400), torch.nn.ReLU(), torch.nn.Linear(400, 10))
large = model[0].weight
generator = torch.Generator().manual_seed(1)
x = torch.randn(64, 300, generator=generator)
y = torch.randint(0, 10, (64,), generator=generator)
def loss_of(rows):
    return torch.nn.functional.cross_entropy(model(x[rows]), y[rows])
"""

# Counts from the first step on, which begins where the worker is made.
JOIN = """
import lockstep.torch
from lockstep._torch_values import Values
def counted(self, *given, move=Values._move):
    moves = move(self, *given)
    self.moved += moves
    return moves
Values.moved, Values._move = 0, counted
worker = lockstep.torch.Worker(model)
values = worker._values
"""

LOOP = """
for step in worker.steps():
    step.backward(loss_of(step.indices(len(x))))
"""

COPIES = """
import lockstep._torch_values
lockstep._torch_values.LARGE = 1 << 60
"""


class ValuesTest(unittest.TestCase):

    def train(self, *parts, workers=1, sets=()):
        """Returns the trained parameters; the program may fail by assert."""
        with TorchJob(workers=workers, sets=[
                f"train_steps={STEPS}", "learning_rate=0.1", *sets]) as job:
            for i in range(workers):
                job.start_worker(i, "".join((MODEL, *parts)))
            for i in range(workers):
                self.assertEqual(job.wait("worker", i), 0,
                                 job.log("worker", i)[-3000:])
            self.assertEqual(job.wait("chief"), 0)
            space = {}
            exec(MODEL, space)
            lockstep.torch.load(space["model"], job.path("checkpoints"))
            return [p.detach().clone() for p in space["model"].parameters()]

    def check_same(self, *others):
        copied = self.train(COPIES, JOIN, LOOP, "assert values.moved == 0\n")
        for other in others:
            for a, b in zip(copied, other):
                self.assertTrue(torch.equal(a, b))

    def test_a_large_parameter_moves_between_two_memories_without_a_copy(self):
        self.check_same(self.train(JOIN, """
places, passes = [], 0
for step in worker.steps():
    passes += 1
    places.append(large.data_ptr())
    step.backward(loss_of(step.indices(len(x))))
assert values.moved == passes, (values.moved, passes)
assert len(set(places)) == 2, places
assert all(a != b for a, b in zip(places, places[1:])), places
"""))

    # An exception of a signal's handler may come anywhere: when the session has
    # given the step out, when its parameter has moved, in the loop's body.
    INTERRUPTED = """
class Stop(Exception):
    pass

class Once:
    def __init__(self, at, before=False):
        self.at, self.before, self.calls = at, before, 0
    def __call__(self, call, *given):
        self.calls += 1
        if self.before and self.calls == self.at: raise Stop
        result = call(*given)
        if self.calls == self.at: raise Stop
        return result

wait, move, body = Once(2), Once(4), Once(3, before=True)
waits, moves = worker._loop.wait, values._move
worker._loop.wait = lambda choose: wait(waits, choose)
values._move = lambda *given: move(moves, *given)
stops, numbers, done = 0, [], False
while not done:
    try:
        for step in worker.steps():
            numbers.append(step.number)
            body(lambda: None)
            step.backward(loss_of(step.indices(len(x))))
        done = True
    except Stop:
        stops += 1
assert stops == 3, stops
# A pass of the step after the last may begin.
numbers = [number for number in numbers if number < STEPS]
assert sorted(set(numbers)) == list(range(STEPS)), numbers
assert len(numbers) == STEPS + 1, numbers
"""

    def test_a_step_is_not_lost_where_an_exception_ends_the_loop(self):
        self.check_same(self.train(JOIN, f"STEPS = {STEPS}", self.INTERRUPTED))

    def test_values_stay_from_the_push_to_the_next_step(self):
        self.check_same(self.train(JOIN, """
import time
for step in worker.steps():
    before = [p.detach().clone() for p in model.parameters()]
    step.backward(loss_of(step.indices(len(x))))
    time.sleep(0.2)  # the next ones arrive
    for a, b in zip(before, model.parameters()):
        assert torch.equal(a, b)
"""))

    @unittest.skipUnless(hasattr(torch, "set_default_device"),
                         "SKIPPED, NOTHING WAS PROVED: PyTorch 1 has no "
                         "torch.set_default_device")
    def test_another_default_device_changes_nothing(self):
        # Parameters stay on the CPU; one has a second owner in some steps.
        self.check_same(self.train("""
seen = large.detach()
torch.set_default_device("meta")
""", JOIN, """
assert worker._leftovers._of_thread.oldest.device.type == "cpu"
for step in worker.steps():
    if step.number == 3:
        assert values.moved == 0 and torch.equal(seen, large)
        del seen
    step.backward(loss_of(step.indices(len(x))))
assert values.moved > 0
"""))

    def test_what_the_program_writes_is_gone_with_the_next_step(self):
        self.check_same(self.train(JOIN, """
for step in worker.steps():
    step.backward(loss_of(step.indices(len(x))))
    for p in model.parameters():
        p.data.fill_(float("nan"))
"""))

    def test_what_the_program_writes_in_vain_is_told_once(self):
        for write, parameter in (
                ("optimizer.step()", "0.bias"),
                ("with torch.no_grad(): large.clamp_(-0.01, 0.01)", "0.weight"),
                ("model[2].bias.data.clamp_(-1e-3, 1e-3)", "2.bias"),
                # As to evaluate an average of the steps.
                ("kept = model[2].bias.clone(); model[2].bias.data.zero_(); "
                 "model[2].bias.data.copy_(kept.detach())", None),
                ("kept = {k: v.clone() for k, v in model.state_dict().items()}; "
                 "model.load_state_dict({k: 0 * v for k, v in kept.items()}); "
                 "model.load_state_dict(kept)", None)):
            with self.subTest(write):
                self.check_same(self.train(JOIN, f"""
import warnings
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    for step in worker.steps():
        step.backward(loss_of(step.indices(len(x))))
        if step.number < worker.train_steps:
            {write}
assert all(each.filename == __file__ for each in told), told
told = [str(each.message) for each in told]
parameter = {parameter!r}
if parameter is None:
    assert not told, told
else:
    assert len(told) == 1, told
    assert 'written to parameter "{parameter}"' in told[0], told
"""))

    def test_tensors_may_be_freed_and_replaced_in_a_pass(self):
        self.check_same(self.train(JOIN, """
import gc
for step in worker.steps():
    loss = loss_of(step.indices(len(x)))
    step.backward(loss)
    if step.number > 0:  # step 0 sends after its body
        for p in model.parameters():
            p.grad = None
    del loss
    gc.collect()
    large.data = torch.full((400, 300), 7.0)
    model[2].bias.data = torch.full((10,), 7.0)
"""))

    def test_a_second_owner_sees_the_values_of_each_step(self):
        for owner in ("large.detach()", "large.detach().numpy()",
                      "large.detach()[3:]", "large.detach().t()"):
            with self.subTest(owner):
                follow = f"""
for step in worker.steps():
    if step.number == 3:
        first, second = {owner}, large.clone()
        moved = values.moved
    if step.number > 3:
        now = {owner}
        assert now.shape == first.shape and (now == first).all()
        assert not torch.equal(large, second)
        assert values.moved == moved
    step.backward(loss_of(step.indices(len(x))))
"""
                self.check_same(
                    self.train(JOIN, follow),
                    self.train(f"early = {owner}\n", JOIN, """
for step in worker.steps():
    assert (torch.as_tensor(early) == torch.as_tensor(%s)).all()
    step.backward(loss_of(step.indices(len(x))))
assert values.moved == 0
""" % owner))

    def test_it_moves_again_when_the_second_owner_is_gone(self):
        self.check_same(self.train(JOIN, """
for step in worker.steps():
    if step.number == 2:
        view = large.view(-1)
    if step.number == 4:
        moved, view = values.moved, None
    step.backward(loss_of(step.indices(len(x))))
assert values.moved > moved
"""))

    def test_memory_that_processes_share_stays(self):
        self.check_same(self.train("""
model.share_memory()
place = large.data_ptr()
""", JOIN, LOOP, """
assert large.is_shared() and large.data_ptr() == place
assert values.moved == 0
"""))

    def test_parameters_that_cannot_move_are_copied(self):
        extra = """
model.strided = torch.nn.Parameter(torch.randn(400, 300).t())
model.low = torch.nn.Parameter(torch.ones(400, 400, dtype=torch.bfloat16))
model.to_double = torch.nn.Parameter(torch.ones(400, 400))
"""
        self.train(extra, JOIN, """
model.to_double.data = model.to_double.data.double()
passes = 0
for step in worker.steps():
    passes += 1
    loss = loss_of(step.indices(len(x)))
    loss = loss + (model.strided.mean() + model.low.float().mean()
                   + model.to_double.mean()) * 160000
    if step.number > 0:
        assert float(model.to_double.min()) < 1
        assert float(model.low.float().max()) < 1
    assert model.strided.stride() == (1, 300)
    assert model.low.dtype == torch.bfloat16
    assert model.to_double.dtype == torch.float64
    step.backward(loss)
# large and low; to_double once, before the loop.
assert values.moved == 2 * passes + 1
""")

    def test_a_graph_of_the_step_before_is_refused(self):
        self.train(JOIN, """
old = None
for step in worker.steps():
    if old is not None:
        try:
            old.backward()
        except RuntimeError as error:
            assert "modified by an inplace operation" in str(error), error
        else:
            raise AssertionError("it used values of two steps")
    old = (large * large).sum()
    step.backward(loss_of(step.indices(len(x))))
""")

    def test_a_step_with_several_passes_copies(self):
        # The same values for each pass, though the program writes to them.
        program = """
shares = set()
for step in worker.steps():
    shares.add(step.share)
    before = [p.detach().clone() for p in model.parameters()]
    if step.share > 0:
        assert all(map(torch.equal, before, same))
    same = before
    step.backward(loss_of(step.indices(len(x))))
    for p in model.parameters():
        p.data.fill_(float("nan"))
assert values.moved == 0
assert len(shares) > 2, shares
"""
        self.train(JOIN, program, sets=["replicas_to_aggregate=3",
                                        "total_num_replicas=1"])
        self.train(JOIN, program.replace("step.share > 0", "False"),
                   sets=["work=SHARED", "micro_batches_per_step=4"])

    def expect_the_last_values(self, sets, early=False, loop=LOOP):
        norm = "model.insert(1, torch.nn.BatchNorm1d(400))\n"
        join = JOIN.replace("Worker(model", "Worker(model, early=True") if early \
            else JOIN
        assert not early or join != JOIN
        with TorchJob(workers=2, sets=["learning_rate=0.1", *sets]) as job:
            for i in range(2):
                job.start_worker(i, MODEL + norm + join + loop + f"""
directory = {job.path("checkpoints")!r}
of_loop = [value.clone() for value in model.state_dict().values()]
with torch.no_grad():
    for value in model.state_dict().values():
        value.zero_()
assert lockstep.torch.load(model, directory) == {STEPS}
# A count of batches is each program's own.
assert all(torch.equal(a, b) for a, b in zip(
    of_loop, model.state_dict().values()) if a.is_floating_point())
""")
            for i in range(2):
                self.assertEqual(job.wait("worker", i), 0,
                                 job.log("worker", i)[-3000:])

    def test_after_the_loop_the_model_has_the_values_of_the_last_step(self):
        self.expect_the_last_values([f"train_steps={STEPS}"])
        self.expect_the_last_values([f"train_steps={STEPS}"], early=True)

    def test_the_job_may_end_during_a_pass_of_no_step(self):
        # It lasts longer than a heartbeat, which tells the worker of the end, and
        # has changed buffers.
        loop = f"""
import time
import warnings
warnings.simplefilter("error")
for step in worker.steps():
    loss = loss_of(step.indices(len(x)))
    if step.number == {STEPS}:
        time.sleep(1)
    step.backward(loss)
"""
        for early in (False, True):
            self.expect_the_last_values([f"train_steps={STEPS}"], early, loop)

    def test_the_job_may_end_while_the_body_of_the_last_step_goes_on(self):
        # As one that computes an accuracy, for longer than the servers stay.
        self.expect_the_last_values([f"train_steps={STEPS}"], loop=f"""
import time
import warnings
warnings.simplefilter("error")
for step in worker.steps():
    step.backward(loss_of(step.indices(len(x))))
    if step.number == {STEPS - 1}:
        time.sleep(7)
""")

    def test_last_values_that_the_program_has_overwritten_are_told(self):
        with TorchJob(sets=[f"train_steps={STEPS}"]) as job:
            # The chief stands still until the pass that counts in no step has
            # begun: it might end the job before.
            chief = job.tasks["chief", 0].pid
            job.start_worker(0, MODEL + JOIN + f"""
import os
import signal
import time
for step in worker.steps():
    loss = loss_of(step.indices(len(x)))
    if step.number == {STEPS - 1}:
        os.kill({chief}, signal.SIGSTOP)
        while " T " not in open("/proc/{chief}/stat").read():
            time.sleep(0.01)
    if step.number == {STEPS}:
        os.kill({chief}, signal.SIGCONT)
        with torch.no_grad():
            large.zero_()
        while not os.path.exists({job.path("gone")!r}):  # the server
            time.sleep(0.02)
    step.push(loss)  # of no gradients
assert step.number == {STEPS} and values.moved > 0
assert large.count_nonzero() == 0
""")
            self.assertEqual(job.wait("ps"), 0, job.log("worker"))
            open(job.path("gone"), "w").close()
            self.assertEqual(job.wait("worker"), 0, job.log("worker"))
            self.assertIn("those of an earlier step or of its own",
                          job.log("worker"))

    def test_a_worker_that_lacks_the_last_values_warns(self):
        with TorchJob(workers=3, sets=["train_steps=3", "learning_rate=0.1",
                                       "replicas_to_aggregate=2"]) as job:
            for i in range(3):
                job.start_worker(i, MODEL + JOIN + f"""
import os
import time
begun = {job.path("begun")!r}  # by worker 2, which may start late
gone = {job.path("gone")!r}  # the server
for step in worker.steps():
    if worker.index == 2:
        open(begun, "w").close()
    while not os.path.exists(gone if worker.index == 2 else begun):
        time.sleep(0.02)
    step.backward(loss_of(step.indices(len(x))))
""")
            self.assertEqual(job.wait("ps"), 0, job.log("chief"))
            open(job.path("gone"), "w").close()
            for i in range(3):
                self.assertEqual(job.wait("worker", i), 0, job.log("worker", i))
            self.assertIn("this worker has those of an earlier step",
                          job.log("worker", 2))

    def test_a_model_outlives_its_worker(self):
        self.train(JOIN, LOOP, """
import gc
before = large.clone()
worker.close()
worker = values = step = None
gc.collect()
assert torch.equal(before, large)
model(x)
""")

    def test_the_bits_are_the_same_when_a_process_is_killed(self):
        program = MODEL + JOIN + """
import time
for step in worker.steps():
    print("step", step.number, "begins", flush=True)
    time.sleep(0.01)
    step.backward(loss_of(step.indices(len(x))))
assert values.moved > 0
"""
        saved = []
        for task in (None, "worker", "ps", "chief"):
            with self.subTest(task), TorchJob(workers=2, sets=[
                    "train_steps=60", "learning_rate=0.1"]) as job:
                for i in range(2):
                    job.start_worker(i, program)
                if task is not None:
                    job.wait_for_log("step 20 begins", index=1)
                    job.kill(task)
                if task == "worker":
                    job.wait_for_log("worker 0 is gone", "chief")
                    job.start_worker(0, program)
                elif task == "ps":
                    job.start_server(0)
                elif task == "chief":
                    job.start_chief()
                for i in range(2):
                    self.assertEqual(job.wait("worker", i), 0,
                                     job.log("worker", i)[-3000:])
                self.assertEqual(job.wait("chief"), 0)
                space = {}
                exec(MODEL, space)
                lockstep.torch.load(space["model"], job.path("checkpoints"))
                saved.append([p.detach().clone()
                              for p in space["model"].parameters()])
                for a, b in zip(saved[0], saved[-1]):
                    self.assertTrue(torch.equal(a, b))

    def test_a_pass_that_is_dropped_leaves_a_process_that_ends(self):
        # PyTorch frees the graph of a backward pass that a hook has ended after
        # the interpreter has ended; a tensor of numpy's memory waits for it.
        with TorchJob(sets=["train_steps=1000000"]) as job:
            job.start_worker(0, MODEL + JOIN + """
def drop(_):
    raise lockstep._session.Unwanted("dropped")
for step in worker.steps():
    if step.number == 2:
        worker._hand_in = drop
        step.backward(loss_of(step.indices(len(x))))
        break
    step.backward(loss_of(step.indices(len(x))))
assert worker._unwanted and values.moved == 3
""")
            self.assertEqual(job.wait("worker"), 0,
                             job.log("worker")[-3000:])


if __name__ == "__main__":
    unittest.main(verbosity=2)
