"""Nothing that a program does wrong aborts the interpreter."""

import ast
import unittest

from local_job import LocalJob, TorchJob
from needs import need

torch = need("torch")

HEAD = """
import gc, os, sys
import torch
import lockstep.torch
torch.set_num_threads(1)
torch.manual_seed(0)

def tell(name, call):
    try:
        call()
    except Exception as error:
        print(f"{name} {type(error).__name__}: {error}", flush=True)
    else:
        print(f"{name} nothing", flush=True)

class Model(torch.nn.Module):
    def __init__(self, dtype=torch.float32):
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(4, dtype=dtype))
    def forward(self):
        return (self.w.float() ** 2).sum() / 100
"""


class MisuseTest(unittest.TestCase):

    def run_program(self, program, sets=(), code=0, workers=1):
        with TorchJob(workers=workers,
                      sets=["train_steps=6", "learning_rate=0.1", *sets]) as job:
            for i in range(workers):
                job.start_worker(i, HEAD + program)
            for i in range(workers):
                self.assertEqual(job.wait("worker", i), code,
                                 job.log("worker", i)[-3000:])
            return job.log("worker")

    def expect(self, log, *lines):
        for line in lines:
            self.assertIn(line, log)

    def test_models_that_cannot_be_trained(self):
        log = self.run_program("""
class Odd(torch.nn.Module):
    def __init__(self, tensor):
        super().__init__()
        self.w = torch.nn.Parameter(tensor)
tell("A", lambda: lockstep.torch.Worker(Odd(torch.zeros(2, dtype=torch.cfloat))))
tell("B", lambda: lockstep.torch.Worker(Odd(torch.zeros(0, 3))))
tell("C", lambda: lockstep.torch.Worker(torch.nn.ReLU()))
tell("D", lambda: lockstep.torch.Worker(Model(), buffers="sum"))
tell("E", lambda: lockstep.torch.Worker(torch.nn.LazyLinear(2)))
tell("Ex", lambda: lockstep.torch.Worker(torch.nn.Sequential(
    Model(), torch.nn.LazyBatchNorm1d(affine=False))))
tell("Ey", lambda: lockstep.torch.Worker(Model().to("meta")))
tell("F", lambda: lockstep.torch.Worker(Model(), name="other"))
tell("G", lambda: lockstep.torch.Worker(Model(), bufers="local"))
tell("H", lambda: lockstep.Worker({3: torch.zeros(2).numpy()}))
tell("I", lambda: lockstep.Worker({}, chief_wiat=3))
tell("J", lambda: lockstep.Worker([torch.zeros(2).numpy()]))
""")
        self.expect(log, 'A ValueError: parameter "w" is of torch.complex64; it '
                    "must be float32, float16, bfloat16 or float64; keep the "
                    "pairs that torch.view_as_real() gives",
                    'B ValueError: the model has no parameter with elements',
                    "C ValueError: the model has no parameter",
                    'D ValueError: buffers is "sum"',
                    'E ValueError: parameter "weight" has no shape yet',
                    'Ex ValueError: buffer "1.running_mean" has no shape yet',
                    'Ey ValueError: parameter "w" is on the device "meta"',
                    "F Refused:",
                    "G TypeError: Worker has no argument bufers; did you mean",
                    "H ValueError: the name of a variable is 3; it must be a",
                    "I TypeError: Worker has no argument chief_wiat; did you",
                    "J TypeError: variables is a list; give a dict")

    def test_arguments_of_another_type(self):
        log = self.run_program("""
import pathlib
W = lambda *args, **more: lambda: lockstep.torch.Worker(*args, **more)
tell("A", W(None))
tell("B", W(torch.nn.Linear))
tell("C", W(Model(), name=3))
tell("D", W(Model(), tls_dir=3))
tell("E", W(Model(), tf_config=pathlib.Path("absent")))
tell("F", W(Model(), settings="train_steps=3"))
tell("G", W(Model(), settings=["train_steps=3", 4]))
tell("H", lambda: lockstep.torch.Evaluator(torch.nn.Linear))
tell("I", lambda: lockstep.torch.load(None, "absent"))
tell("J", lambda: lockstep.torch.Embedding([1, 2], dim=2))
for name, wrong in (("P", "10"), ("Q", None), ("Qa", -1), ("Qb", float("nan"))):
    tell(name, W(Model(), chief_wait=wrong))
tell("R", lambda: lockstep.Evaluator(chief_wait="10"))
tell("S", W(Model(), shared_memory="no"))
tell("T", W(Model(), early="no"))
model = Model()
model.words = lockstep.torch.Embedding(4, dim=2)
for step in lockstep.torch.Worker(model).steps():
    if step.number == 0:
        tell("K", lambda: model.words([1, 2]))
        tell("L", lambda: step.prefetch([1, 2]))
        for name, wrong in (("M", 1.5), ("N", 10**30), ("O", 2**31)):
            tell(name, lambda: step.backward(model(), examples=wrong))
    step.backward(model(), examples=2**31 - 1)
print("ended")
""")
        self.expect(log, "A TypeError: model is of the type NoneType; give a",
                    "B TypeError: model is the class Linear; give an object",
                    "C TypeError: name is 3; give a str",
                    "D TypeError: tls_dir is 3; give a str or a pathlib.Path",
                    "E RuntimeError: the cluster file absent",
                    "F TypeError: settings is 'train_steps=3'; give a list",
                    "G TypeError: settings[1] is 4; give a str",
                    "H TypeError: model is the class", "I TypeError: model is",
                    "J TypeError: rows is [1, 2]; give an integer",
                    *(f"{name} TypeError: chief_wait is {wrong}; give a number "
                      "of seconds" for name, wrong in
                      (("P", "'10'"), ("Q", "None"), ("R", "'10'"))),
                    *(f"{name} ValueError: chief_wait is {wrong}; give a number"
                      for name, wrong in (("Qa", -1), ("Qb", "nan"))),
                    *(f"{name} TypeError: {what} is 'no'; give True or False"
                      for name, what in (("S", "shared_memory"), ("T", "early"))),
                    *(f"{k} TypeError: the ids are of the type list" for k in "KL"),
                    "M TypeError: examples is 1.5; give an integer",
                    "N ValueError: examples is 1" + 30 * "0" + "; it must be 0",
                    "O ValueError: examples is 2147483648; it must be 0 to "
                    "2147483647", "ended")

    def test_steps_used_wrongly(self):
        log = self.run_program("""
model = Model()
worker = lockstep.torch.Worker(model)
tell("two", lambda: lockstep.torch.Worker(Model()))
old = None
for step in worker.steps():
    if step.number == 0:
        tell("A", lambda: step.backward(model.w))
        tell("B", lambda: step.backward(1.0))
        tell("C", lambda: step.backward(model(), examples=-1))
        tell("D", lambda: step.indices(0))
        tell("Dx", lambda: step.indices(10.7))
        tell("Dy", lambda: step.indices(10**30))
        tell("Dz", lambda: step.indices(100, ahead=2))
        tell("E", lambda: step.backward(torch.zeros(())))
        tell("Ex", lambda: step.push(torch.ones(2)))
        model.zero_grad()
    else:
        tell("F", lambda: old.backward(model()))
        tell("G", lambda: old.indices(100))
        tell("I", lambda: old.push())
        tell("Ix", lambda: old.report(a=1.0))
    old = step
    step.backward(model())
    if step.number > 1:
        tell("J", lambda: step.backward(model()))
        tell("K", lambda: step.push())
tell("Lx", lambda: old.report(a=1.0))
worker.close()
tell("L", lambda: old.indices(100))
tell("M", lambda: next(worker.steps()))
print("alive")
""")
        self.expect(log, "two RuntimeError: this process is a worker already",
                    "A ValueError: the loss has the shape (4,), but must",
                    "B ValueError: the loss is a float",
                    "C ValueError: examples is -1",
                    "D ValueError", "Dx TypeError: n is 10.7; give an integer",
                    f"Dy ValueError: n is {10**30}; it must be 0 to",
                    "Dz ValueError: ahead is 2; it must be 0 to 1",
                    "E RuntimeError",
                    "Ex TypeError: loss is tensor([1., 1.]); give a number",
                    "F RuntimeError: step 0 is",
                    "G RuntimeError", "I RuntimeError",
                    "Ix RuntimeError: step 0 is over", "Lx RuntimeError",
                    "J RuntimeError: backward was called 2 times",
                    "K RuntimeError: the gradients of step", "L RuntimeError",
                    "M StopIteration", "alive")

    def test_a_step_without_gradients_is_an_exception(self):
        log = self.run_program("""
worker = lockstep.torch.Worker(Model())
def loop():
    for step in worker.steps():
        pass
tell("A", loop)
""")
        self.expect(log, "A RuntimeError: the step at hand has no gradients yet")

    # A backward pass that fails on demand: between two layers, when the gradient
    # of the last has been sent, or before both.
    FAILS = """
class Fails(torch.autograd.Function):
    now = False
    @staticmethod
    def forward(_, x):
        return x.clone()
    @staticmethod
    def backward(_, gradient):
        if Fails.now:
            raise RuntimeError("out of memory")
        return gradient
model = torch.nn.ModuleList([torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)])
def loss_of(between=True):
    if between:
        return model[1](Fails.apply(model[0](torch.ones(8, 4)))).pow(2).mean()
    return Fails.apply(model[1](model[0](torch.ones(8, 4))).pow(2).mean())
def fail(step, *args):
    Fails.now = True
    try:
        step.backward(loss_of(*args))
    except RuntimeError as error:
        print("caught", error)
    Fails.now = False
def weights():
    return [w for each in model for w in each.weight.flatten().tolist()]
worker = lockstep.torch.Worker(model)
"""

    def test_a_part_of_a_gradient_is_not_trained_on(self):
        log = self.run_program(self.FAILS + """
def loop():
    for step in worker.steps():
        print("begins", step.number)
        if step.number == 1:
            fail(step)
            tell("B", lambda: step.backward(loss_of()))
            tell("C", step.push)
        else:
            step.backward(loss_of())
tell("A", loop)
tell("D", loop)
""")
        self.expect(log, "caught out of memory", "begins 1",
                    *(f"{name} RuntimeError: backward failed in step 1, and "
                      "has left a part of a gradient" for name in "ABCD"))
        self.assertNotIn("begins 2", log)

    def test_the_second_of_two_backward_calls_cannot_be_repeated(self):
        log = self.run_program(self.FAILS + """
for step in worker.steps():
    step.backward(loss_of())
    fail(step, False)
    tell("A", lambda: step.backward(loss_of()))
    break
""")
        self.expect(log, "caught out of memory",
                    "A RuntimeError: backward failed in step 0")

    def test_a_backward_pass_of_which_nothing_was_sent_can_be_repeated(self):
        train = """
for step in worker.steps():
    if {fails}:
        fail(step, step.number == 0)
    step.backward(loss_of())
    # Here: a pass may begin after the last step, with the next weights.
    if step.number == 5:
        print("weights", weights())
"""
        logs = [self.run_program(self.FAILS + train.format(fails=fails))
                for fails in ("False", "step.number in (0, 3)")]
        self.assertEqual(logs[1].count("caught out of memory"), 2)
        # A last bit may differ: PyTorch's products go by where memory begins.
        weights = [ast.literal_eval(log[log.index("weights") + 7:].split("\n")[0]
                                    .strip()) for log in logs]
        self.assertEqual(len(weights[0]), len(weights[1]))
        for one, other in zip(*weights):
            self.assertAlmostEqual(one, other, delta=1e-6)
        log = self.run_program(self.FAILS + """
def loop():
    for step in worker.steps():
        fail(step)
tell("A", loop)
""")
        self.expect(log, "A RuntimeError: the step at hand has no gradients yet")

    def test_gradients_of_nan_are_trained_or_refused_as_the_job_says(self):
        program = """
model = Model()
worker = lockstep.torch.Worker(model)
for step in worker.steps():
    print("w", step.number, *model.w.tolist())
    step.backward(model() * float("nan"))
print("ended")
"""
        log = self.run_program(program, ["refuse_non_finite=false"])
        self.expect(log, "w 0 1.0 1.0 1.0 1.0", "w 5 nan nan nan nan", "ended")
        log = self.run_program(program, code=1)
        self.expect(log, "Refused", 'gradient of part 0 ("w")',
                    "NaN or an infinity")
        self.assertNotIn("w 1 ", log)

    def test_a_child_made_by_fork_is_no_worker(self):
        log = self.run_program("""
model = Model()
worker = lockstep.torch.Worker(model)
for step in worker.steps():
    if step.number == 1:
        child = os.fork()
        if child == 0:
            tell("child", lambda: step.backward(model()))
            tell("next", lambda: next(worker.steps()))
            sys.exit(5)  # runs the handlers of the exit
        print("code", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    step.backward(model())
print("ended")
""")
        self.expect(log, "child RuntimeError: this process was forked", "code 5",
                    "ended")

    def test_passes_without_gradients_and_replaced_parameters_are_told(self):
        log = self.run_program("""
import warnings
warnings.simplefilter("always")
model = Model()
worker = lockstep.torch.Worker(model)
def loop():
    for step in worker.steps():
        if step.number == 2:
            model.w = torch.nn.Parameter(torch.ones(4))
        if step.number > 0:
            step.backward(model())
        else:
            step.push(model())
tell("A", loop)
""")
        self.expect(log, "RuntimeWarning: no parameter has a gradient in this",
                    'A RuntimeError: parameter "w" is another one than when')
        # Step 0, whose gradients were never asked for, and step 2.
        self.assertEqual(log.count("no parameter has a gradient"), 2, log)

    def test_a_parameter_that_is_unfrozen_in_the_loop_is_an_exception(self):
        log = self.run_program("""
model = torch.nn.Sequential(Model(), Model())
model[0].w.requires_grad_(False)
worker = lockstep.torch.Worker(model)
def loop():
    for step in worker.steps():
        print("step", step.number)
        step.backward(model[0]() + model[1]())
        model[0].w.requires_grad_(step.number == 1)
tell("A", loop)
""")
        self.expect(log, "step 1",
                    'A RuntimeError: parameter "0.w" requires a gradient')
        self.assertNotIn("step 2", log)

    def test_a_parameter_that_a_parametrization_moves_is_trained(self):
        log = self.run_program("""
class Twice(torch.nn.Module):
    def forward(self, w):
        return 2 * w
model = Model()
worker = lockstep.torch.Worker(model)
torch.nn.utils.parametrize.register_parametrization(model, "w", Twice())
for step in worker.steps():
    step.backward(model())
print("moved", float(model.parametrizations.w.original[0]) < 1)
""")
        self.expect(log, "moved True")

    def test_a_fault_of_the_program_fails_the_job_without_a_wait(self):
        make = "lockstep.torch.Worker(model)"
        for begin, worker in ((f"worker = {make}\nif True:", "worker"),
                              (f"with {make} as worker:", "worker"),
                              ("if True:", make),
                              (f"""
class Wrapped:
    def steps(self):
        worker = {make}
        yield from worker.steps()
if True:""", "Wrapped()"),
                              (f"""
class Holder:
    worker = {make}
    def steps(self):
        for step in self.worker.steps():
            yield step
if True:""", "Holder()")):
            with LocalJob(workers=1, sets=["train_steps=1000",
                                           "lease=100s"]) as job:
                job.start_worker(0, HEAD + f"""
model = Model()
{begin}
    for step in {worker}.steps():
        step.backward(model())
        if step.number == 3:
            raise KeyError("batch")
""")
                self.assertEqual(job.wait("worker", 0), 1)
                self.assertEqual(job.wait("chief", 0, timeout=50), 1)
                self.assertIn("worker 0 left: failed: KeyError: 'batch'; 0 of "
                              "1 workers", job.log("chief", 0))

    def test_a_worker_that_goes_out_of_scope_leaves_the_job(self):
        log = self.run_program("""
import weakref
import numpy as np
gc.disable()
torch_worker = lambda: lockstep.torch.Worker(model)
worker_of_numpy = lambda: lockstep.Worker({"w": np.ones(4, np.float32)})
model = Model()
for make, push in ((torch_worker, lambda step: step.backward(model())),
                   (worker_of_numpy, lambda step: step.push({}))):
    worker = make()
    this = weakref.ref(worker)
    for step in worker.steps():
        push(step)
        if step.number >= 2:
            break
    loss = model()  # holds the nodes that have hooks
    del worker
    print("gone", this() is None)
    tell("A", lambda: push(step))
    loss.backward()
for make in torch_worker, worker_of_numpy:
    tell("B", lambda: next(lockstep.torch.Worker(model, name="other")))
    for step in make().steps():
        break
for step in torch_worker().steps():
    step.backward(model())
# A pass may begin before the chief has told that step 6 was the last.
print("ended", step.number in (5, 6))
""")
        self.assertEqual(log.count("gone True"), 2, log)
        self.assertEqual(log.count("is over: its worker is gone"), 2, log)
        self.assertEqual(log.count("B Refused: "), 2, log)
        self.expect(log, "ended True")

    def test_halves_are_trained_in_their_type(self):
        for dtype, near in (("float16", 0.02), ("bfloat16", 0.02),
                            ("float64", 1e-6)):
            log = self.run_program(f"""
model = Model(torch.{dtype})
worker = lockstep.torch.Worker(model)
for step in worker.steps():
    step.backward(model())
    print("w", step.number, float(model.w[0]), model.w.dtype)
""", ["learning_rate=1"])
            # w := w - 2 w / 100, five times: 0.904
            value = float([line for line in log.splitlines()
                           if line.startswith("w 5 ")][0].split()[2])
            self.assertLess(abs(value - 0.98 ** 5), near, dtype)
            self.assertLess(value, 0.95, dtype)
            self.expect(log, f"torch.{dtype}")

    def test_workers_whose_gradients_come_in_another_order_train(self):
        # More than fits into one window of calls, so that a worker waits for
        # the other's gradients before it sends all its own.
        log = self.run_program("""
class Branches(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = torch.nn.ParameterList(
            [torch.nn.Parameter(torch.ones(1 << 18)) for _ in range(64)])
    def forward(self, turned):
        total = torch.zeros(())
        for p in reversed(self.parts) if turned else self.parts:
            total = (total + p.mean()) * 0.5
        return total
model = Branches()
worker = lockstep.torch.Worker(model, shared_memory=False)
for step in worker.steps():
    step.backward(model(worker.index == 1))
print("ended")
""", workers=2, sets=["max_part_bytes=65536"])
        self.expect(log, "ended")


if __name__ == "__main__":
    unittest.main(verbosity=2)
