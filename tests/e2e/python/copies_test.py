"""Gradients on their way from a GPU, with a device that is made up.

Its copies are as late as they may be: they read their source when an event
behind them is waited for, or when the test says so.
"""

import unittest
from unittest import mock

from local_job import TorchJob
from needs import need

torch = need("torch")

# Also part of the program below.
DEVICE = '''
import contextlib
import torch

class Device:
    """Stands for torch.cuda."""
    def __init__(self):
        self.computes = self.Stream(None)
        self.current = self.computes
        device = self
        class Late(torch.Tensor):
            def copy_(self, source, non_blocking=False):
                assert non_blocking and device.current is not device.computes
                def copy():
                    with torch.no_grad():
                        torch.Tensor.copy_(self, source)
                device.current.work.append(copy)
        self._late = Late
    class Stream:
        def __init__(self, device):
            self.work, self.done, self.waits_for = [], 0, []
        def wait_stream(self, other):
            self.waits_for.append(other)
        def run(self, upto):
            while self.done < upto:
                self.work[self.done]()
                self.done += 1
    class Event:
        def record(self, stream):
            self.stream, self.upto = stream, len(stream.work)
        def query(self):
            return self.stream.done >= self.upto
        def synchronize(self):
            self.stream.run(self.upto)
    def current_stream(self, device):
        return self.computes
    @contextlib.contextmanager
    def stream(self, stream):
        self.current = stream
        yield
        self.current = self.computes
    def page_locked(self, like):
        return torch.full_like(like, float("nan")).as_subclass(self._late)
'''
exec(DEVICE)

import lockstep.checkpoint  # noqa: E402
from lockstep import _torch_copies  # noqa: E402
from lockstep._torch_copies import HostCopies  # noqa: E402


class HostCopiesTest(unittest.TestCase):

    def setUp(self):
        self.device = Device()
        self.handed_in = []
        self.copies = HostCopies(None, self.handed_in.append, self.device,
                                 self.device.page_locked)
        self.targets = {i: torch.zeros(2) for i in range(4)}

    def start(self, i, value):
        self.copies.start(i, torch.full((2,), float(value)), self.targets[i])

    def test_nothing_is_handed_in_before_its_copy_has_arrived(self):
        self.start(3, 30)
        self.start(2, 20)
        self.assertEqual(self.handed_in, [])
        self.copies.settle()
        self.assertEqual(self.handed_in, [3, 2])
        self.assertEqual(self.targets[3].tolist(), [30, 30])
        self.assertEqual(self.targets[2].tolist(), [20, 20])

    def test_copies_wait_for_the_computation(self):
        self.start(3, 30)
        stream = self.copies._stream
        self.assertEqual(stream.waits_for, [self.device.computes])

    def test_what_has_arrived_is_handed_in_while_others_are_computed(self):
        self.start(3, 30)
        self.start(2, 20)
        self.copies._stream.run(1)
        self.start(1, 10)
        self.assertEqual(self.handed_in, [3])
        self.copies.settle()
        self.assertEqual(self.handed_in, [3, 2, 1])

    def test_the_next_pass_has_values_of_its_own(self):
        self.start(3, 30)
        self.copies.settle()
        self.start(3, 31)
        self.copies.settle()
        self.assertEqual(self.targets[3].tolist(), [31, 31])

    def test_a_dropped_pass_is_not_handed_in_and_its_copies_end(self):
        self.start(3, 30)
        self.copies.drop()
        self.assertEqual(self.copies._stream.done, 1)
        self.copies.settle()
        self.assertEqual(self.handed_in, [])

    def test_copies_arrive_on_the_host_whatever_the_default_device_is(self):
        with mock.patch.object(torch, "empty") as empty:
            _torch_copies._page_locked(self.targets[0])
        empty.assert_called_once_with((2,), dtype=torch.float32, device="cpu",
                                      pin_memory=True)

    def test_an_error_of_handing_in_ends_the_pass(self):
        def refuse(_):
            raise RuntimeError("nobody needs it")

        self.copies = HostCopies(None, refuse, self.device,
                                 self.device.page_locked)
        self.start(3, 30)
        self.start(2, 20)
        with self.assertRaisesRegex(RuntimeError, "nobody"):
            self.copies.settle()
        self.copies.settle()  # nothing is pending


PROGRAM = DEVICE + '''
torch.set_num_threads(1)
torch.manual_seed(0)
import lockstep.torch
from lockstep._torch_copies import HostCopies

model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(),
                            torch.nn.Linear(8, 3))
worker = lockstep.torch.Worker(model)
if HOW == "late":
    device = Device()
    worker._copies = {torch.device("cpu"): HostCopies(
        None, worker._hand_in, device, device.page_locked)}
x = torch.randn(64, 4)
y = torch.randint(3, (64,))
for step in worker.steps():
    rows = step.indices(64)
    out = model(x[rows])
    step.backward(torch.nn.functional.cross_entropy(out, y[rows]))
if HOW == "late":  # all four gradients of each step were
    copied = worker._copies[torch.device("cpu")]._stream.done
    assert copied >= 4 * 20, copied
'''


class WorkerTest(unittest.TestCase):

    def test_training_by_late_copies_has_the_same_bits(self):
        ends = []
        for how in ("ordinary", "late"):
            with TorchJob() as job:
                job.start_worker(0, PROGRAM.replace("HOW", repr(how)))
                self.assertEqual(job.wait("worker"), 0,
                                 job.log("worker")[-3000:])
                self.assertEqual(job.wait("chief"), 0)
                ends.append(lockstep.checkpoint.read(job.path("checkpoints"))[1])
        self.assertEqual(ends[0].keys(), ends[1].keys())
        for name, value in ends[0].items():
            self.assertEqual(value[2].tobytes(), ends[1][name][2].tobytes(),
                             name)


if __name__ == "__main__":
    unittest.main(verbosity=2)
