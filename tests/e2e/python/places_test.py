"""Models that change after their worker was made, and those of TorchScript."""

import time
import unittest

from needs import need

torch = need("torch")

import lockstep.torch
from local_job import TorchJob
from lockstep._torch_places import Places, check_memory

MODEL = """
import torch
torch.set_num_threads(1)
torch.manual_seed(0)
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(3, 4),
                                        torch.nn.BatchNorm1d(4))
        self.head = torch.nn.Linear(4, 1)
    def forward(self, x):
        return self.head(torch.tanh(self.body(x))).pow(2).mean()
model = Model()
x = torch.randn(64, 3, generator=torch.Generator().manual_seed(1))
"""

TRAIN = """
import lockstep.torch
worker = lockstep.torch.Worker(model, early=EARLY)
for step in worker.steps():
    step.backward(model(x[step.indices(len(x))]))
print("ended")
"""


class PlacesTest(unittest.TestCase):

    def setUp(self):
        self.model = torch.nn.Sequential(torch.nn.Linear(2, 2),
                                         torch.nn.Linear(2, 1))
        self.model[0].bias.requires_grad_(False)
        self.places = Places(self.model)
        self.places.check()

    def check_refused(self, name):
        for _ in range(2):
            with self.assertRaisesRegex(
                    RuntimeError, f'"{name}" was not in the model when'):
                self.places.check()

    def test_a_module_in_the_place_of_another_is_refused(self):
        self.model[1] = torch.nn.Linear(2, 1)
        self.check_refused("1.weight")

    def test_a_module_or_parameter_that_was_added_is_refused(self):
        self.model.add_module("more", torch.nn.Linear(1, 1))
        self.check_refused("more.weight")
        del self.model.more
        self.places.check()
        self.model[1].scale = torch.nn.Parameter(torch.ones(1))
        self.check_refused("1.scale")

    def test_a_new_parameter_in_the_place_of_a_frozen_one_is_refused(self):
        self.model[0].bias = torch.nn.Parameter(torch.ones(2))
        with self.assertRaisesRegex(RuntimeError, '"0.bias" requires a grad'):
            self.places.check()

    def test_a_parameter_of_another_shape_is_refused_with_both(self):
        weight = self.model[1].weight
        self.assertEqual(
            self.places.as_sent("1.weight", weight.to_sparse()).tolist(),
            weight.tolist())
        # PyTorch would copy the one element to both places.
        weight.data = torch.ones(1, 1)
        for call in (self.places.check,
                     lambda: self.places.as_sent("1.weight",
                                                 torch.ones(1, 1))):
            with self.assertRaisesRegex(
                    RuntimeError, r'"1.weight" has the shape \(1, 1\) now, and '
                    r"had \(1, 2\) when"):
                call()

    def test_a_module_around_the_others_is_no_fault(self):
        self.model[0] = torch.nn.Sequential(self.model[0], torch.nn.ReLU())
        self.model[1].register_parameter("none", None)
        frozen = torch.nn.Parameter(torch.ones(1), requires_grad=False)
        self.model[1].register_parameter("frozen", frozen)
        self.places.check()
        # Its parts are watched from then on.
        self.model[0][1] = torch.nn.PReLU()
        self.check_refused("0.1.weight")


class ModelsTest(unittest.TestCase):

    def train(self, change, early=False, code=0):
        """Returns the trained values by name, and the worker's log."""
        with TorchJob(sets=["train_steps=8", "learning_rate=0.1"]) as job:
            job.start_worker(0, MODEL + change
                             + TRAIN.replace("EARLY", str(early)))
            self.assertEqual(job.wait("worker"), code,
                             job.log("worker")[-3000:])
            log = job.log("worker")
            if code:
                return {}, log
            self.assertEqual(job.wait("chief"), 0)
            space = {}
            exec(MODEL, space)
            lockstep.torch.load(space["model"], job.path("checkpoints"))
            return space["model"].state_dict(), log

    def test_a_head_that_comes_after_the_worker_ends_the_loop(self):
        _, log = self.train("""
import lockstep.torch
make = lockstep.torch.Worker
def replaced(model, **options):
    worker = make(model, **options)
    model.head = torch.nn.Linear(4, 1)
    return worker
lockstep.torch.Worker = replaced
""", code=1)
        self.assertIn('parameter "head.weight" was not in the model', log)
        self.assertNotIn("ended", log)

    def test_a_parameter_that_shrinks_in_a_pass_is_not_trained_on(self):
        with TorchJob(sets=["train_steps=8", "learning_rate=0.1"]) as job:
            job.start_worker(0, """
import torch
import lockstep.torch
model = torch.nn.Linear(3, 1, bias=False)
worker = lockstep.torch.Worker(model)
for step in worker.steps():
    print("begins", step.number, flush=True)
    model.weight.grad = torch.ones(1, 3)
    if step.number == 2:
        model.weight.grad = None
        model.weight.data = model.weight.grad = torch.ones(1, 1)
    step.push()
""")
            self.assertEqual(job.wait("worker"), 1, job.log("worker")[-3000:])
            self.assertIn('"weight" has the shape (1, 1) now, and had (1, 3) '
                          "when", job.log("worker"))
            self.assertNotIn("begins 3", job.log("worker"))

    def test_a_part_that_is_frozen_after_the_worker_is_trained_once_it_is_not(
            self):
        with TorchJob(sets=["train_steps=8", "learning_rate=0.1"]) as job:
            job.start_worker(0, """
import torch
import lockstep.torch
late, other = torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)
worker = lockstep.torch.Worker(torch.nn.ModuleList([late, other]))
first = late.weight.item()
for step in worker.steps():
    print("late", step.number, late.weight.item() == first)
    late.requires_grad_(step.number >= 3)
    step.backward(late(other(torch.ones(2, 1))).mean())
""")
            self.assertEqual(job.wait("worker"), 0, job.log("worker")[-3000:])
            log = job.log("worker")
            for number in range(8):
                self.assertIn(f"late {number} {number <= 3}", log)
            self.assertNotIn("Warning", log)

    def test_models_of_torch_script_train_as_others(self):
        plain, _ = self.train("")
        for script in ("model = torch.jit.script(model)",
                       "model.body = torch.jit.script(model.body)"):
            for early in (False, True):
                with self.subTest(script, early=early):
                    other, log = self.train(script, early)
                    self.assertIn("ended", log)
                    for name, value in plain.items():
                        # Each process counts the batches for itself.
                        if "num_batches" not in name:
                            self.assertLess(float(
                                (value - other[name]).abs().max()), 1e-6, name)


class MemoryTest(unittest.TestCase):

    def check(self, parameters, buffers=()):
        check_memory([(f"p{i}", each) for i, each in enumerate(parameters)],
                     [(f"b{i}", each) for i, each in enumerate(buffers)])

    def test_what_lies_side_by_side_in_one_memory_is_trained(self):
        whole = torch.zeros(6, 8)
        self.check([whole[:, :4], whole[:, 4:]], [torch.zeros(3)])
        self.check([whole[:3], whole[3:].view(torch.int32)])
        # Two that have no memory have the same.
        self.check([torch.zeros(0), torch.zeros(0, 3), torch.zeros(())])
        self.check([torch.zeros(2)], [whole, whole[0]])

    def test_many_parameters_in_one_memory_are_checked_in_time(self):
        whole = torch.zeros(8 * 5000)
        began = time.monotonic()
        self.check(whole.split(8))
        # To compare each with each takes more than 20 s.
        self.assertLess(time.monotonic() - began, 8)

    def test_parameters_that_share_an_element_are_refused(self):
        whole = torch.zeros(6, 8)
        for first, second in ((whole[:, :5], whole[:, 4:]), (whole, whole.t()),
                              (whole[2:], whole[:3]),
                              (whole.view(torch.uint8)[:, :1], whole[5])):
            with self.assertRaisesRegex(
                    ValueError, 'parameter "p1" shares memory with parameter '
                    '"p0", .*clone'):
                self.check([first, second])

    def test_a_worker_trains_no_model_whose_tensors_share_memory(self):
        model = torch.nn.Sequential(torch.nn.Linear(2, 2),
                                    torch.nn.Linear(2, 2))
        model[1].weight.data = model[0].weight.data
        with self.assertRaisesRegex(ValueError, '"1.weight" shares memory'):
            lockstep.torch.Worker(model)
        model[1].weight = model[0].weight  # one parameter
        model.register_buffer("shadow", model[0].bias.detach())
        with self.assertRaisesRegex(ValueError, 'buffer "shadow" shares memory '
                                    'with parameter "0.bias"'):
            lockstep.torch.Worker(model)


class ModelsThatCannotBeTrainedTest(unittest.TestCase):

    def setUp(self):
        self.outside = torch.nn.Linear(2, 2)

    def check(self, model, text):
        with self.assertRaisesRegex(ValueError, text):
            lockstep.torch.Worker(model)

    def test_a_parameter_in_another_layout_is_refused(self):
        model = torch.nn.Linear(2, 2)
        model.weight = torch.nn.Parameter(torch.eye(2).to_sparse())
        self.check(model, '"weight" has the layout torch.sparse_coo.*to_dense')

    def test_a_buffer_in_another_layout_is_refused(self):
        for sparse in torch.eye(2).to_sparse(), torch.eye(2).to_sparse_csr():
            model = torch.nn.Linear(2, 2)
            model.register_buffer("graph", sparse)
            self.check(model, 'buffer "graph" has the layout torch.sparse_.*'
                       'to_dense.*buffers="local"')

    def test_a_model_or_worker_of_inference_mode_is_refused(self):
        text = '"weight" cannot be trained in torch.inference_mode'
        with torch.inference_mode():
            self.check(self.outside, text)
            model = torch.nn.Linear(2, 2)
        self.check(model, text)


if __name__ == "__main__":
    unittest.main(verbosity=2)
