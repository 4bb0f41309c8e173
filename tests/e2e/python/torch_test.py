"""lockstep.torch.Worker beside PyTorch's own training, in real processes."""

import math
import types
import unittest

from needs import need

torch = need("torch")

import lockstep.torch
from local_job import TorchJob, rows_of
from lockstep._torch_hooks import Hooks

# A model, its data, and the training of it; both sides run these lines.
COMMON = """
import torch
torch.set_num_threads(1)
torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(),
    torch.nn.Linear(4 * 36, 10))
generator = torch.Generator().manual_seed(1)
x = torch.randn(256, 1, 8, 8, generator=generator)
y = torch.randint(0, 10, (256,), generator=generator)
loss_of = torch.nn.functional.cross_entropy
"""

WORKER = COMMON + """
import lockstep.torch
worker = lockstep.torch.Worker(model)
for step in worker.steps():
    rows = step.indices(len(x))
    print("rows", step.number, *rows.tolist())
    loss = loss_of(model(x[rows]), y[rows])
    step.backward(loss)
"""


class TorchWorkerTest(unittest.TestCase):

    def check_equals_one_process(self, optimizer, sets, steps=200, clip=None):
        if clip is not None:
            sets = [*sets, "clipping.kind=MEAN_GLOBAL_NORM",
                    f"clipping.limit={clip}"]
        clipped = 0
        with TorchJob(workers=2, servers=2,
                      sets=[f"train_steps={steps}", *sets]) as job:
            for i in range(2):
                job.start_worker(i, WORKER)
            for i in range(2):
                self.assertEqual(job.wait("worker", i), 0,
                                 job.log("worker", i)[-2000:])
            self.assertEqual(job.wait("chief"), 0)
            space = {}
            exec(COMMON, space)
            alone = space["model"]
            optimizer = optimizer(alone.parameters())
            batches = [rows_of(job, i) for i in range(2)]
            for number in range(steps):
                joined = batches[0][number] + batches[1][number]
                optimizer.zero_grad()
                space["loss_of"](alone(space["x"][joined]),
                                 space["y"][joined]).backward()
                if clip is not None:
                    norm = torch.nn.utils.clip_grad_norm_(
                        alone.parameters(), clip)
                    clipped += int(norm > clip)
                optimizer.step()
            if clip is not None:  # both kinds of steps occur
                self.assertGreater(clipped, 10)
                self.assertLess(clipped, steps - 10)
            trained = {}
            exec(COMMON, trained)
            self.assertEqual(
                lockstep.torch.load(trained["model"], job.path("checkpoints")),
                steps)
            far = max(float((a - b).abs().max()) for a, b in zip(
                trained["model"].parameters(), alone.parameters()))
            moved = {}
            exec(COMMON, moved)
            self.assertGreater(max(
                float((a - b).abs().max()) for a, b in zip(
                    moved["model"].parameters(), alone.parameters())), 1e-2)
            self.assertLess(far, 1e-5)

    def test_sgd_equals_one_process_on_the_joined_batch(self):
        self.check_equals_one_process(
            lambda p: torch.optim.SGD(p, lr=0.05), ["learning_rate=0.05"])

    def test_momentum_equals_one_process_on_the_joined_batch(self):
        self.check_equals_one_process(
            lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9),
            ["learning_rate=0.01", "optimizer.kind=MOMENTUM"])

    def test_adam_equals_one_process_on_the_joined_batch(self):
        self.check_equals_one_process(
            lambda p: torch.optim.Adam(p, lr=1e-3, weight_decay=0.01),
            ["learning_rate=1e-3", "optimizer.kind=ADAM_TORCH",
             "optimizer.weight_decay=0.01"])

    def test_adamw_equals_one_process_on_the_joined_batch(self):
        self.check_equals_one_process(
            lambda p: torch.optim.AdamW(p, lr=1e-3),
            ["learning_rate=1e-3", "optimizer.kind=ADAMW"])

    def test_nesterov_equals_one_process_on_the_joined_batch(self):
        self.check_equals_one_process(
            lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9, nesterov=True,
                                      weight_decay=0.001),
            ["learning_rate=0.01", "optimizer.kind=SGD",
             "optimizer.momentum=0.9", "optimizer.use_nesterov=true",
             "optimizer.weight_decay=0.001"])

    def test_sgd_with_clipping_equals_one_process_on_the_joined_batch(self):
        self.check_equals_one_process(
            lambda p: torch.optim.SGD(p, lr=0.05), ["learning_rate=0.05"],
            clip=1.45)

    def test_momentum_with_clipping_equals_one_process(self):
        self.check_equals_one_process(
            lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9),
            ["learning_rate=0.01", "optimizer.kind=MOMENTUM"], clip=1.45)

    def test_adam_with_clipping_equals_one_process(self):
        self.check_equals_one_process(
            lambda p: torch.optim.Adam(p, lr=1e-3, weight_decay=0.01),
            ["learning_rate=1e-3", "optimizer.kind=ADAM_TORCH",
             "optimizer.weight_decay=0.01"], clip=1.45)

    def test_adamw_with_clipping_and_exempt_biases_equals_one_process(self):
        self.check_equals_one_process(
            lambda p: torch.optim.AdamW([{
                "params": [w], "weight_decay": 2.0 * (w.dim() > 1)} for w in p]),
            ["learning_rate=1e-3", "optimizer.kind=ADAMW", "optimizer."
             "weight_decay=2", "optimizer.weight_decay_exempt=*bias"], clip=1.45)

    def test_cosine_with_warm_up_equals_one_process(self):
        # LambdaLR calls for the rate of the next step.
        schedules = []

        def make(parameters):
            optimizer = torch.optim.AdamW(parameters, lr=3e-3)
            schedule = torch.optim.lr_scheduler.LambdaLR(
                optimizer, lambda step: step / 20 if step < 20 else
                0.5 * (1 + math.cos(math.pi * (step - 20) / 180)))
            schedules.append(schedule)
            step = optimizer.step

            def step_both():
                step()
                schedule.step()
            optimizer.step = step_both
            return optimizer
        self.check_equals_one_process(
            make, ["learning_rate=3e-3", "optimizer.kind=ADAMW",
                   "learning_rate_schedule.kind=COSINE",
                   "learning_rate_schedule.warmup_steps=20"])
        self.assertEqual(schedules[0].last_epoch, 200)

    # In each step each worker uses one of three heads, so that a head has the
    # gradient of one worker, of both, or none; the last one has none at first.
    HEADS = '''
import torch
torch.set_num_threads(1)
torch.manual_seed(0)
model = torch.nn.ModuleDict({
    "trunk": torch.nn.Linear(6, 5),
    "heads": torch.nn.ModuleList(torch.nn.Linear(5, 1) for _ in range(3))})
x = torch.randn(64, 6, generator=torch.Generator().manual_seed(1))
def head_of(step, worker):
    return ((step * 7) % 5 + worker * (step % 3)) % (2 if step < 30 else 3)
def loss_of(model, rows, step, worker):
    head = model["heads"][head_of(step, worker)]
    return (head(torch.tanh(model["trunk"](x[rows]))) - 1).square().mean()
'''

    def check_heads(self, optimizer, sets, clip=None, steps=90):
        program = self.HEADS + '''
import lockstep.torch
worker = lockstep.torch.Worker(model)
for step in worker.steps():
    rows = step.indices(len(x))
    print("rows", step.number, *rows.tolist())
    step.backward(loss_of(model, rows, step.number, worker.index))
'''
        sets = [*sets, f"train_steps={steps}", "max_part_bytes=16"]
        if clip is not None:
            sets += ["clipping.kind=MEAN_GLOBAL_NORM", f"clipping.limit={clip}"]
        with TorchJob(workers=2, servers=2, sets=sets) as job:
            for i in range(2):
                job.start_worker(i, program)
            for i in range(2):
                self.assertEqual(job.wait("worker", i), 0,
                                 job.log("worker", i)[-2000:])
            self.assertEqual(job.wait("chief"), 0)
            space = {}
            exec(self.HEADS, space)
            alone = space["model"]
            optimizer = optimizer(alone.parameters())
            batches = [rows_of(job, i) for i in range(2)]
            untouched = set()
            for number in range(steps):
                optimizer.zero_grad(set_to_none=True)
                sum(space["loss_of"](alone, batches[w][number], number, w) / 2
                    for w in range(2)).backward()
                untouched |= {i for i, p in enumerate(alone.parameters())
                              if p.grad is None}
                if clip is not None:
                    torch.nn.utils.clip_grad_norm_(alone.parameters(), clip)
                optimizer.step()
            self.assertEqual(len(untouched), 6)  # weights and biases of heads
            trained = {}
            exec(self.HEADS, trained)
            lockstep.torch.load(trained["model"], job.path("checkpoints"))
            for (name, a), b in zip(trained["model"].named_parameters(),
                                    alone.parameters()):
                self.assertLess(float((a - b).abs().max()), 1e-5, name)

    def test_gradients_of_none_equal_one_process_with_adam(self):
        self.check_heads(lambda p: torch.optim.Adam(p, lr=0.01),
                         ["learning_rate=0.01", "optimizer.kind=ADAM_TORCH"])

    def test_gradients_of_none_equal_one_process_with_momentum_and_decay(self):
        self.check_heads(
            lambda p: torch.optim.SGD(p, lr=0.02, momentum=0.9, dampening=0.3,
                                      weight_decay=0.1),
            ["learning_rate=0.02", "optimizer.kind=SGD",
             "optimizer.momentum=0.9", "optimizer.dampening=0.3",
             "optimizer.weight_decay=0.1"])

    def test_gradients_of_none_equal_one_process_with_clipping(self):
        self.check_heads(lambda p: torch.optim.AdamW(p, lr=0.01),
                         ["learning_rate=0.01", "optimizer.kind=ADAMW"],
                         clip=0.3)

    def run_alone(self, program, sets=()):
        with TorchJob(sets=["train_steps=6", *sets]) as job:
            job.start_worker(0, program)
            self.assertEqual(job.wait("worker"), 0, job.log("worker")[-3000:])
            self.assertEqual(job.wait("chief"), 0)
            space = {}
            exec(program.split("import lockstep")[0], space)
            lockstep.torch.load(space["model"], job.path("checkpoints"))
            return [p.detach().clone() for p in space["model"].parameters()]

    def test_several_backward_calls_in_a_step_add_up(self):
        whole = self.run_alone(WORKER)
        halves = self.run_alone(WORKER.replace(
            "    loss = loss_of(model(x[rows]), y[rows])\n"
            "    step.backward(loss)\n",
            "    for half in (rows[:4], rows[4:]):\n"
            "        step.backward(loss_of(model(x[half]), y[half]) / 2)\n"))
        pushed = self.run_alone(WORKER.replace(
            "step.backward(loss)", "loss.backward(); step.push(loss)"))
        self.check_equal(whole, halves)
        for a, b in zip(whole, pushed):
            self.assertTrue(torch.equal(a, b))

    def check_equal(self, ones, others):
        for a, b in zip(ones, others):
            self.assertLess(float((a - b).abs().max()), 1e-6)

    def test_the_number_of_backward_calls_may_vary_if_the_last_is_told(self):
        whole = self.run_alone(WORKER)
        for last in ("i == len(parts) - 1", "False"):
            self.check_equal(whole, self.run_alone(WORKER.replace(
                "    loss = loss_of(model(x[rows]), y[rows])\n"
                "    step.backward(loss)\n", f"""
    parts = rows.split([8, 4, 2][step.number % 3])
    for i, part in enumerate(parts):
        loss = loss_of(model(x[part]), y[part]) / len(parts)
        step.backward(loss, last={last})
""")))

    def test_two_backward_calls_through_one_graph_equal_one_with_the_sum(self):
        program = WORKER.replace("loss = loss_of(model(x[rows]), y[rows])", """
    out = model(x[rows])
    loss, other = loss_of(out, y[rows]), out.square().mean()""")
        whole = self.run_alone(program.replace("(loss)", "(loss + other)"))
        for keep in ("retain_graph=True", "create_graph=True"):
            self.check_equal(whole, self.run_alone(program.replace(
                "(loss)", f"(loss, {keep}); step.backward(other)")))

    def test_a_first_step_that_is_dropped_shows_how_many_calls_a_step_has(self):
        def drop():
            raise lockstep._session.Unwanted("dropped")

        # A worker that has not joined.
        worker = object.__new__(lockstep.torch.Worker)
        worker._calls, worker._unwanted = 0, False
        worker._begin_sending = drop
        worker._names = ["w"]
        worker._hooks = Hooks(worker, [])
        worker._values = types.SimpleNamespace(
            missing={0}, warn_of_writes=lambda names: None)
        worker._buffers = types.SimpleNamespace(missing=True)
        step = lockstep.torch.Step(worker, 0, 0, 0, 0, 0)
        worker._at_hand = step
        step._calls = 2
        worker._after(step)
        self.assertTrue(worker._unwanted)
        # Nothing is awaited any more.
        self.assertFalse(worker._values.missing or worker._buffers.missing)
        self.assertEqual(worker._calls, 2)

    def test_gradients_that_are_not_kept_are_sent_the_same(self):
        forget = WORKER.replace("Worker(model)",
                                "Worker(model, keep_gradients=False)")
        # Step 0 sends after its body: how many calls come is not known yet.
        after = ("\n    assert step.number == 0 or all("
                 "p.grad is {} for p in model.parameters())\n")
        backward = "step.backward(loss)"
        push = "loss.backward(); step.push(loss)"
        # The gradient of the first call is there when the second adds to it.
        twice = ("step.backward(loss / 2); "
                 "assert model[0].weight.grad is not None; "
                 "step.backward(loss_of(model(x[rows]), y[rows]) / 2)")
        for how in (backward, push, twice):
            with self.subTest(how):
                kept = self.run_alone(WORKER.replace(
                    backward, how + after.replace("is {}", "is not None")))
                lost = self.run_alone(forget.replace(
                    backward, how + after.replace("{}", "None")))
                for a, b in zip(kept, lost):
                    self.assertTrue(torch.equal(a, b))

    def test_a_gradient_that_is_completed_twice_is_refused(self):
        program = """
import torch
from torch.utils.checkpoint import checkpoint
model = torch.nn.Linear(3, 3)
x = torch.ones(2, 3, requires_grad=True)
def loss_of(reentrant):
    h = checkpoint(model, x, use_reentrant=reentrant)
    return checkpoint(model, h, use_reentrant=reentrant).sum()
import lockstep.torch
worker = lockstep.torch.Worker(model)
for step in worker.steps():
    loss = loss_of(step.number == 3)
    if step.number == 3:
        try:
            step.backward(loss)
        except RuntimeError as error:
            assert 'use_reentrant=False' in str(error), error
            break
        raise AssertionError("a part of the gradient was sent")
    step.backward(loss)
"""
        with TorchJob() as job:
            job.start_worker(0, program)
            self.assertEqual(job.wait("worker"), 0, job.log("worker")[-3000:])

    def test_frozen_and_tied_parameters_and_absent_gradients(self):
        program = """
import torch
torch.manual_seed(3)
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(3, 3, bias=False)
        self.b = torch.nn.Linear(3, 3, bias=False)
        self.b.weight = self.a.weight
        self.frozen = torch.nn.Parameter(torch.ones(3), requires_grad=False)
        self.unused = torch.nn.Parameter(torch.ones(2))
        self.transposed = torch.nn.Parameter(torch.randn(3, 2).t())
        self.scalar = torch.nn.Parameter(torch.tensor(2.0))
        self.low = torch.nn.Parameter(torch.ones(3, dtype=torch.bfloat16))
    def forward(self, x):
        return (self.b(self.a(x)) @ self.transposed.t() * self.scalar
                ).sum() + 100 * (self.low.float() * self.frozen).sum()
model = Model()
import lockstep.torch
worker = lockstep.torch.Worker(model)
for step in worker.steps():
    step.backward(model(torch.ones(2, 3)) / 100)
"""
        trained = self.run_alone(program, ["learning_rate=0.1"])
        space = {}
        exec(program.split("import lockstep")[0], space)
        model = space["model"]
        optimizer = torch.optim.SGD(
            [p for p in model.parameters() if p.requires_grad], lr=0.1)
        for _ in range(6):
            optimizer.zero_grad()
            (model(torch.ones(2, 3)) / 100).backward()
            optimizer.step()
        names = [name for name, _ in model.named_parameters()]
        for name, a, b in zip(names, trained, model.parameters()):
            tolerance = 1e-2 if b.dtype == torch.bfloat16 else 1e-6
            self.assertLess(float((a - b).abs().max()), tolerance, name)
        self.assertLess(float(model.low.float().max()), 0.5)  # it was 1

    def test_a_frozen_model_is_loaded_too(self):
        with TorchJob(sets=["train_steps=6", "learning_rate=0.1"]) as job:
            job.start_worker(0, WORKER)
            self.assertEqual(job.wait("worker"), 0, job.log("worker")[-3000:])
            self.assertEqual(job.wait("chief"), 0)
            start, trained, frozen = {}, {}, {}
            for space in (start, trained, frozen):
                exec(COMMON, space)
            lockstep.torch.load(trained["model"], job.path("checkpoints"))
            model = frozen["model"].requires_grad_(False)
            model.own = torch.nn.Parameter(torch.ones(1), requires_grad=False)
            lockstep.torch.load(model, job.path("checkpoints"))
            for key, value in trained["model"].state_dict().items():
                self.assertTrue(torch.equal(value, model.state_dict()[key]))
                self.assertFalse(
                    torch.equal(value, start["model"].state_dict()[key]))
            self.assertEqual(float(model.own), 1)
            model.own.requires_grad_(True)
            with self.assertRaisesRegex(ValueError, 'has no "own"'):
                lockstep.torch.load(model, job.path("checkpoints"))

    def check_buffers(self, how):
        common = COMMON.replace("torch.nn.ReLU(), ",
                                "torch.nn.BatchNorm2d(4), torch.nn.ReLU(), ")
        program = WORKER.replace(COMMON, common).replace(
            "Worker(model)", f'Worker(model, buffers="{how}")')
        steps = 20
        with TorchJob(workers=2, sets=[
                f"train_steps={steps}", "learning_rate=0.05",
                # Neither is for buffers.
                "optimizer.kind=ADAMW", "clipping.kind=VALUE",
                "clipping.limit=1e-6"]) as job:
            program = program.replace("step.backward(loss)", """
    step.backward(loss)
    if step.number == 19:
        torch.save([begun, model.state_dict()],
                   "%s/%d.pt" % (WHERE, worker.index))
""").replace("    rows = step", """
    begun = {k: v.clone() for k, v in model.state_dict().items()}
    rows = step""").replace("WHERE", repr(job.folder.name))
            for i in range(2):
                job.start_worker(i, program)
            for i in range(2):
                self.assertEqual(job.wait("worker", i), 0,
                                 job.log("worker", i)[-2000:])
            self.assertEqual(job.wait("chief"), 0)
            own = [torch.load(job.path(f"{i}.pt")) for i in range(2)]
            space = {}
            exec(common, space)
            if how == "mean":
                lockstep.torch.load(space["model"], job.path("checkpoints"))
            return own, space["model"]

    def test_buffers_are_averaged_over_the_workers(self):
        own, trained = self.check_buffers("mean")
        for key in ("1.running_mean", "1.running_var"):
            self.assertTrue(torch.equal(own[0][0][key], own[1][0][key]), key)
            # What the last step has made of those.
            mean = (own[0][1][key] + own[1][1][key]) / 2
            far = (trained.state_dict()[key] - mean).abs().max()
            self.assertLess(float(far), 1e-6)
            self.assertFalse(torch.equal(own[0][1][key], own[1][1][key]), key)

    def test_local_buffers_stay_the_workers_own(self):
        own, _ = self.check_buffers("local")
        self.assertFalse(torch.equal(own[0][0]["1.running_mean"],
                                     own[1][0]["1.running_mean"]))

    def test_a_killed_worker_comes_back_and_the_bits_are_the_same(self):
        saved = []
        # So slow that the job lasts until the kill.
        slow = "import time\n" + WORKER.replace(
            "    step.backward", "    time.sleep(0.01)\n    step.backward")
        for disturbed in (False, True):
            with TorchJob(workers=2, sets=["train_steps=150"]) as job:
                for i in range(2):
                    job.start_worker(i, slow if disturbed else WORKER)
                if disturbed:
                    job.wait_for_log("rows 40 ", index=0)
                    job.kill("worker", 0)
                    job.wait_for_log("worker 0 is gone", "chief")
                    job.start_worker(0, slow)
                for i in range(2):
                    self.assertEqual(job.wait("worker", i), 0,
                                     job.log("worker", i)[-2000:])
                self.assertEqual(job.wait("chief"), 0)
                space = {}
                exec(COMMON, space)
                lockstep.torch.load(space["model"], job.path("checkpoints"))
                saved.append([p.detach().clone()
                              for p in space["model"].parameters()])
        for a, b in zip(*saved):
            self.assertTrue(torch.equal(a, b))


if __name__ == "__main__":
    unittest.main(verbosity=2)
