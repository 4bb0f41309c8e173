"""Tables of Python workers: rows that steps fetch and push."""

import math
import unittest

import numpy as np

from local_job import TorchJob, rows_of
from lockstep import checkpoint
from needs import need

torch = need("torch")

import lockstep.torch
from lockstep import _torch_load

COMMON = """
import torch
torch.set_num_threads(1)
torch.manual_seed(0)
generator = torch.Generator().manual_seed(1)
ids = torch.randint(0, 40, (256, 2), generator=generator)
y = torch.randn(256, generator=generator)

class Model(torch.nn.Module):
    def __init__(self, embedding):
        super().__init__()
        self.embedding = embedding
        self.out = torch.nn.Linear(6, 1)
    def forward(self, ids):
        return self.out(self.embedding(ids).flatten(1)).squeeze(1)
"""

WORKER = COMMON + """
import lockstep.torch
model = Model(lockstep.torch.Embedding(rows=40, dim=3, std=0.0))
worker = lockstep.torch.Worker(model)
for step in worker.steps():
    rows = step.indices(len(ids))
    print("rows", step.number, *rows.tolist())
    loss = ((model(ids[rows]) - y[rows]) ** 2).mean()
    step.backward(loss)
"""


# Exceptions while rows are pulled: in the body, and in the push.
INTERRUPTED = """
import numpy as np
import lockstep
from lockstep import _base

class Stop(Exception):
    pass

worker = lockstep.Worker({"t": lockstep.Table(rows=8, dim=2, std=0.0),
                          "b": np.zeros(1, np.float32)})
native = worker._loop.native
pull, stops, pulls = native.pull_rows, 0, 0
def interrupted():
    global pulls
    pulls += 1
    pull()
    if pulls in (1, 4): raise Stop
native.pull_rows = interrupted
done = False
while not done:
    try:
        for step in worker.steps():
            rows = np.array([1, 3 + step.number % 2])
            step.rows("t", rows)
            for attempt in range(2):
                try:
                    step.push({"t": lockstep.Rows(rows[:1], np.ones((1, 2),
                                                            np.float32)),
                               "b": np.ones(1, np.float32)})
                    break
                except Stop:
                    stops += 1
        done = True
    except Stop:
        stops += 1
assert stops == 2, stops
"""

LOADS = COMMON + """
import numpy as np
import lockstep.torch
from lockstep import _torch_load
model = Model(lockstep.torch.Embedding(rows=40, dim=3, std=0.0))
def fill(value):
    def tensor(*shape):
        values = np.full(shape, value, np.float32)
        return "F32", list(shape), values.view(np.uint8)
    _torch_load.fill(model, 7, {"out.weight": tensor(1, 6),
                                "out.bias": tensor(1),
                                "embedding.weight": tensor(40, 3)})
"""


class TableTest(unittest.TestCase):

    def train(self, program, workers=1, sets=()):
        with TorchJob(workers=workers, servers=2, sets=sets) as job:
            for i in range(workers):
                job.start_worker(i, program)
            for i in range(workers):
                self.assertEqual(job.wait("worker", i), 0,
                                 job.log("worker", i)[-3000:])
            self.assertEqual(job.wait("chief"), 0, job.log("chief")[-2000:])
            _, tensors = checkpoint.read(job.path("checkpoints"))
            tensors = {name: checkpoint.array(*each).copy()
                       for name, each in tensors.items()}
            return (tensors, [rows_of(job, i) for i in range(workers)],
                    [job.log("worker", i) for i in range(workers)])

    def test_exceptions_while_rows_are_pulled_double_no_gradient(self):
        tensors, _, _ = self.train(INTERRUPTED, sets=[
            "train_steps=6", "learning_rate=1", "optimizer.kind=SGD"])
        self.assertEqual(tensors["b"].tolist(), [-6])
        self.assertEqual(tensors["t"].tolist(),
                         [[0, 0], [-6, -6]] + [[0, 0]] * 6)

    def test_sums_of_micro_batches_change_no_bit(self):
        sets = ["work=SHARED", "micro_batches_per_step=8", "batch_size=32",
                "train_steps=40", "learning_rate=0.1"]
        alone, _, _ = self.train(WORKER, sets=sets)
        for per_push in (2, 8):
            others, _, _ = self.train(
                WORKER, workers=2,
                sets=[*sets, f"micro_batches_per_push={per_push}"])
            self.assertEqual(set(others), set(alone))
            for name, value in alone.items():
                self.assertGreater(abs(value).max(), 0, name)
                self.assertTrue((others[name] == value).all(),
                                (per_push, name))

    def test_mirrors_have_the_bits_of_servers(self):
        sets = ["train_steps=40", "learning_rate=0.1", "optimizer.kind=ADAM"]
        servers, _, _ = self.train(WORKER, workers=2, sets=sets)
        mirrors, _, _ = self.train(
            WORKER, workers=2,
            sets=[*sets, "strategy.kind=MULTI_WORKER_MIRRORED"])
        self.assertEqual(set(mirrors), set(servers))
        for name, value in servers.items():
            self.assertGreater(abs(value).max(), 0, name)
            self.assertTrue((mirrors[name] == value).all(), name)

    def test_rows_follow_the_mean_over_the_workers_that_used_them(self):
        steps = 50
        tensors, batches, _ = self.train(
            WORKER, workers=2,
            sets=[f"train_steps={steps}", "learning_rate=0.1"])
        space = {}
        exec(COMMON, space)
        ids, y = space["ids"], space["y"]
        model = space["Model"](torch.nn.Embedding.from_pretrained(
            torch.zeros(40, 3), freeze=False))
        for number in range(steps):
            out = [torch.zeros_like(p) for p in model.out.parameters()]
            table = torch.zeros(40, 3)
            users = torch.zeros(40, 1)
            for batch in batches:
                rows = batch[number]
                model.zero_grad()
                ((model(ids[rows]) - y[rows]) ** 2).mean().backward()
                for total, p in zip(out, model.out.parameters()):
                    total += p.grad / 2
                table += model.embedding.weight.grad
                users[ids[rows].unique()] += 1
            with torch.no_grad():
                for total, p in zip(out, model.out.parameters()):
                    p -= 0.1 * total
                model.embedding.weight -= 0.1 * table / users.clamp(min=1)
        far = np.abs(tensors["embedding.weight"] -
                     model.embedding.weight.detach().numpy()).max()
        self.assertLess(far, 1e-5)
        self.assertGreater(np.abs(tensors["embedding.weight"]).max(), 1e-2)

    def test_rows_that_were_looked_up_before_the_loop_count_in_no_step(self):
        tensors, _, _ = self.train("""
import torch
import lockstep.torch
table = lockstep.torch.Embedding(rows=4, dim=1, std=0.0)
worker = lockstep.torch.Worker(table)
if worker.index == 0:
    (3 * table(torch.tensor([1])).sum()).backward()
for step in worker.steps():
    step.backward(table(torch.tensor([worker.index])).sum())
""", workers=2, sets=["train_steps=2", "learning_rate=1",
                      "optimizer.kind=SGD"])
        self.assertEqual(tensors["weight"].tolist(), [[-2], [-2], [0], [0]])

    def test_prefetched_rows_change_no_bit(self):
        sets = ["train_steps=30", "learning_rate=0.1"]
        plain, _, _ = self.train(WORKER, sets=sets)
        ahead, _, _ = self.train(WORKER.replace(
            "    step.backward(loss)\n",
            "    step.prefetch(ids[step.indices(len(ids), ahead=1)])\n"
            "    step.backward(loss)\n"), sets=sets)
        # Rows that the next step does not use are not pushed with it.
        wrong, _, _ = self.train(WORKER.replace(
            "    step.backward(loss)\n",
            "    step.prefetch(torch.tensor([step.number % 40, 39]))\n"
            "    step.backward(loss)\n"), sets=[*sets, "optimizer.kind=MOMENTUM"])
        momentum, _, _ = self.train(WORKER,
                                    sets=[*sets, "optimizer.kind=MOMENTUM"])
        for name in ("embedding.weight", "out.weight"):
            np.testing.assert_array_equal(plain[name], ahead[name])
            np.testing.assert_array_equal(wrong[name], momentum[name])

    def test_a_checkpointed_segment_may_look_rows_up(self):
        sets = ["train_steps=10", "learning_rate=0.1"]
        # More rows than the next step looks up.
        ahead = WORKER.replace(
            "    step.backward(loss)\n",
            "    step.prefetch(torch.arange(40))\n    step.backward(loss)\n")
        plain, _, _ = self.train(ahead, sets=sets)
        for reentrant in (False, True):
            again, _, _ = self.train(ahead.replace(
                "model(ids[rows])",
                "torch.utils.checkpoint.checkpoint(lambda i, _: model(i), "
                "ids[rows], torch.ones(1, requires_grad=True), "
                f"use_reentrant={reentrant})").replace(
                    "import torch\n",
                    "import torch, torch.utils.checkpoint\n", 1), sets=sets)
            for name in ("embedding.weight", "out.weight"):
                np.testing.assert_array_equal(plain[name], again[name])

    def test_gradients_with_a_graph_of_their_own_change_no_bit(self):
        sets = ["train_steps=5", "learning_rate=0.1"]
        plain, _, _ = self.train(WORKER, sets=sets)
        graph, _, _ = self.train(WORKER.replace(
            "step.backward(loss)", "step.backward(loss, create_graph=True)"),
            sets=sets)
        for name in ("embedding.weight", "out.weight"):
            np.testing.assert_array_equal(plain[name], graph[name])

    def test_a_step_may_look_up_rows_more_than_once_and_in_eval_mode(self):
        sets = ["train_steps=10", "learning_rate=0.1"]
        plain, _, _ = self.train(WORKER, sets=sets)
        halves, _, _ = self.train(WORKER.replace(
            "    loss = ((model(ids[rows]) - y[rows]) ** 2).mean()\n"
            "    step.backward(loss)\n",
            "    for half in (rows[:4], rows[4:]):\n"
            "        step.backward(((model(ids[half]) - y[half]) ** 2).mean()"
            " / 2)\n"), sets=sets)
        looks, _, _ = self.train(WORKER.replace(
            "    step.backward(loss)\n",
            "    with torch.no_grad():\n"
            "        model.eval()(ids)\n"
            "    model.train()\n"
            "    step.backward(loss)\n"), sets=sets)
        np.testing.assert_allclose(plain["embedding.weight"],
                                   halves["embedding.weight"], atol=1e-6)
        np.testing.assert_array_equal(plain["embedding.weight"],
                                      looks["embedding.weight"])

    def test_a_growing_table_has_the_keys_that_were_looked_up(self):
        program = WORKER.replace("rows=40", "row_limit=100").replace(
            "self.embedding(ids)", "self.embedding(ids * 10 ** 12)")
        with TorchJob(sets=["train_steps=20", "learning_rate=0.1"]) as job:
            job.start_worker(0, program)
            self.assertEqual(job.wait("worker"), 0, job.log("worker")[-3000:])
            self.assertEqual(job.wait("chief"), 0)
            space = {}
            exec(COMMON, space)
            model = space["Model"](lockstep.torch.Embedding(
                row_limit=100, dim=3))
            lockstep.torch.load(model, job.path("checkpoints"))
            # A pass of the step after the last may begin.
            used = {int(i) for number, rows in rows_of(job, 0).items()
                    if number < 20 for i in space["ids"][rows].flatten()}
            self.assertGreater(len(used), 20)
            for i in range(40):
                value = model.embedding(torch.tensor([i * 10 ** 12]))
                self.assertEqual(bool(value.abs().sum() > 0), i in used, i)

    def test_a_checkpoint_with_another_table_changes_nothing(self):
        space = {}
        exec(COMMON + "import lockstep.torch\n"
             "model = Model(lockstep.torch.Embedding(rows=40, dim=3))", space)
        model = space["model"]
        before = [p.detach().clone() for p in model.parameters()]

        def tensor(*shape):
            return "F32", list(shape), np.ones(shape, np.float32).view(np.uint8)

        with self.assertRaisesRegex(ValueError, "embedding.weight"):
            _torch_load.fill(model, 7, {
                "out.weight": tensor(1, 6), "out.bias": tensor(1),
                "embedding.weight": tensor(40, 4)})
        for p, start in zip(model.parameters(), before):
            self.assertTrue(torch.equal(p, start))

    def test_after_close_in_a_step_a_model_has_the_rows_that_were_loaded(self):
        program = LOADS + """
worker = lockstep.torch.Worker(model)
for step in worker.steps():
    model(ids[:4])
    break
worker.close()
fill(1)
print("loaded", *model(ids[:4]).tolist())
"""
        with TorchJob() as job:
            job.start_worker(0, program)
            self.assertEqual(job.wait("worker"), 0, job.log("worker")[-3000:])
            self.assertIn("loaded 7.0 7.0 7.0 7.0", job.log("worker"))

    def test_rows_are_never_those_of_another_time_than_the_parameters(self):
        # Rows of 9 are loaded before the worker joins; the job's are 0 or less.
        program = LOADS + """
fill(9)
worker = lockstep.torch.Worker(model)
for step in worker.steps():
    rows = model.embedding(torch.tensor([0]))
    assert step.number > 0 or not rows.any(), rows
    step.backward(model(ids[:4]).sum() + rows.sum())
    try:
        # The first step's rows stay to its end, for there may be a second call.
        model.eval()(ids[:4])
        print("had rows in", step.number)
    except RuntimeError as error:
        print("refused", step.number, error)
    model.train()
try:
    model(ids[:4])
except RuntimeError as error:
    print("ended", error)
fill(1)
print("loaded", *model(ids[:4]).tolist())
"""
        with TorchJob(sets=["train_steps=4"]) as job:
            job.start_worker(0, program)
            self.assertEqual(job.wait("worker"), 0, job.log("worker")[-3000:])
            log = job.log("worker")
        self.assertIn("had rows in 0\n", log)
        self.assertEqual(log.count("had rows"), 1, log)
        for number in range(1, 4):
            self.assertRegex(log, f"refused {number} .* gradients of step "
                             f"{number}; evaluate the model before step.backw")
        self.assertIn("ended this Embedding has rows only in a step", log)
        self.assertIn("loaded 7.0 7.0 7.0 7.0", log)

    def test_rows_that_are_loaded_in_a_step_serve_until_the_next(self):
        program = LOADS + """
for step in lockstep.torch.Worker(model).steps():
    step.backward(model(ids[:4]).sum(), last=True)
    fill(1)
    print("loaded", *model.eval()(ids[:4]).tolist())
    model.train()
    if step.number == 2:
        break
"""
        with TorchJob() as job:
            job.start_worker(0, program)
            self.assertEqual(job.wait("worker"), 0, job.log("worker")[-3000:])
            self.assertEqual(
                job.log("worker").count("loaded 7.0 7.0 7.0 7.0"), 3)

    def test_a_row_that_a_loaded_table_lacks_is_named(self):
        table = lockstep.torch.Embedding(rows=4, dim=1)
        table._load({"t": ("F32", [4, 1], np.ones(4, np.float32))}, "t",
                    checkpoint.array)
        for ids, wrong in (([3, 4], 4), ([-2, 3], -2)):
            with self.assertRaisesRegex(
                    ValueError, f"no row {wrong}; rows are 0 to 3"):
                table(torch.tensor(ids))

    def test_sizes_that_cannot_be_are_exceptions_that_name_them(self):
        for make in lockstep.Table, lockstep.torch.Embedding:
            for error, message, sizes in (
                    (TypeError, "rows is 2.5; give an int", {"rows": 2.5}),
                    (TypeError, "row_limit is '4'", {"row_limit": "4"}),
                    (TypeError, "dim is 1.5", {"rows": 2, "dim": 1.5}),
                    (TypeError, "dim is 'a'", {"rows": 2, "dim": "a"}),
                    (ValueError, "of 0 rows of 3 .*above 0", {"rows": 0}),
                    (ValueError, "below 2\\*\\*63", {"row_limit": 2**64}),
                    (ValueError, "below 2\\*\\*63", {"rows": 2, "dim": 2**64}),
                    *((ValueError, f"std is {std}; it must be 0 or more, and fin",
                       {"rows": 2, "std": std})
                      for std in (-1.0, math.inf, math.nan))):
                with self.subTest(make=make, **sizes), self.assertRaisesRegex(
                        error, message):
                    make(**{"dim": 3, **sizes})
            for sizes in {}, {"rows": 2, "row_limit": 2}:
                with self.assertRaisesRegex(
                        ValueError, "either rows= or row_limit="):
                    make(dim=3, **sizes)
            one = make(rows=2, dim=3, std=0.5)
            self.assertEqual((one._described("t")[1:], one._rows_at_hand(
                4, "t").width), (([2, 3], "float32", None, (2, 0.0, 0.5), 2,
                                  False), (3,)))
            one = make(row_limit=2, dim=3, std=0.0)
            self.assertEqual(one._described("t")[4:], ((0, 0.0, 0.0), 3, False))
            self.assertEqual(make(rows=1e3, dim=np.int32(4)).rows, 1000)
        for mean in math.inf, math.nan:
            with self.assertRaisesRegex(ValueError, f"mean is {mean}; it must"):
                lockstep.Table(rows=2, mean=mean)
        self.assertEqual(lockstep.Table(rows=2, dim=(3, 4)).width, (3, 4))

    def test_a_table_that_no_pass_touches_counts_no_update(self):
        # Adam's first update moves each element by the learning rate; a later
        # one by less, because its bias correction is smaller.
        for kind in (["ADAM_TORCH"],
                     ["ADAMW", "optimizer.weight_decay_exempt=t"]):
            with self.subTest(kind), TorchJob(sets=[
                    "train_steps=8", "learning_rate=0.25",
                    "optimizer.kind=" + kind[0], *kind[1:]]) as job:
                job.start_worker(0, """
import numpy as np
import lockstep
worker = lockstep.Worker({"t": lockstep.Table(rows=8, dim=2, std=0.0),
                          "b": np.zeros(1, np.float32)})
for step in worker.steps():
    pushed = {"b": np.ones(1, np.float32)}
    if step.number == 6:
        step.rows("t", np.array([3]))
        pushed["t"] = lockstep.Rows(np.array([3]), np.ones((1, 2), np.float32))
    if step.number == 7:
        print("row", step.rows("t", np.array([3])).round(6).tolist())
    step.push(pushed)
""")
                self.assertEqual(job.wait("worker"), 0, job.log("worker"))
                self.assertIn("row [[-0.25, -0.25]]", job.log("worker"))

    def test_numpy_workers_push_rows(self):
        program = """
import lockstep, numpy as np
worker = lockstep.Worker({"w": np.ones((4, 2)),
                          "t": lockstep.Table(rows=6, dim=2, mean=1.0)})
for step in worker.steps():
    rows = step.rows("t", [[4, 1], [1, 4]])
    assert rows.shape == (2, 2, 2), rows.shape
    assert (rows[0, 0] == rows[1, 1]).all()
    if step.number == 0:
        assert (rows == 1).all()
        for wrong in (lambda: step.rows("t", [6]), lambda: step.rows("v", [0]),
                      lambda: step.rows("t", [1.5]),
                      lambda: step.push({"t": np.zeros((6, 2))}),
                      lambda: step.push({"t": lockstep.Rows([0], [[1.0]])}),
                      lambda: step.push({"w": lockstep.Rows([4], [[1.0, 1]])}),
                      lambda: lockstep.Rows([0, 1], [[1.0]])):
            try:
                wrong()
            except ValueError as error:
                print("refused", error)
    step.push({"t": lockstep.Rows([4, 1, 4], [[1.0, 0], [0, 2], [1, 0]]),
               "w": lockstep.Rows([3, 0, 3], [[1.0, 1], [2, 2], [1, 1]])})
"""
        tensors, _, logs = self.train(
            program, sets=["train_steps=2", "learning_rate=0.25"])
        np.testing.assert_array_equal(
            tensors["t"], [[1, 1], [1, 0], [1, 1], [1, 1], [0, 1], [1, 1]])
        np.testing.assert_array_equal(
            tensors["w"], [[0, 0], [1, 1], [1, 1], [0, 0]])
        self.assertEqual(logs[0].count("refused"), 7, logs[0])
        self.assertIn("are float64; they must be integers", logs[0])
        self.assertIn("no row 6; rows are 0 to 5", logs[0])

    def test_the_sum_of_repeated_rows_is_not_of_their_small_type(self):
        # 2048 + 1 is 2048 in float16, and 100 + 100 is -56 in int8.
        for value, dtype, count, total in ((1, np.float16, 4096, np.float32),
                                           (100, np.int8, 2, np.float32),
                                           (2**31 - 1, np.int32, 2, np.float64),
                                           (1, np.float64, 3, np.float64)):
            ids, rows = lockstep.Rows(
                [3] * count, np.full((count, 1), value, dtype)).sums()
            self.assertEqual((ids.tolist(), rows.tolist(), rows.dtype),
                             ([3], [[count * value]], total))

    def test_wrong_ids_and_tables_are_exceptions_with_the_fix(self):
        program = WORKER.replace("    step.backward(loss)\n", """
    if step.number == 0:
        for wrong in (lambda: model(torch.tensor([[0, 40]])),
                      lambda: model(torch.tensor([[0, -1]])),
                      lambda: model(torch.tensor([[0.0, 1.0]])),
                      lambda: step.prefetch(torch.tensor([40])),
                      lambda: step.prefetch(ids, table=model.out)):
            try:
                wrong()
            except ValueError as error:
                print("refused", error)
    step.backward(loss)
try:
    model(ids)
except RuntimeError as error:
    print("ended", error)
import copy
copy.deepcopy(model)
""")
        _, _, logs = self.train(program, sets=["train_steps=3"])
        self.assertEqual(logs[0].count("refused"), 5, logs[0])
        self.assertIn("ended this Embedding has rows only in a step", logs[0])


if __name__ == "__main__":
    unittest.main(verbosity=2)
