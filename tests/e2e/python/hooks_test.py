"""Hooks of gradients that come from the threads of several devices."""

import threading
import unittest

from needs import need

torch = need("torch")

import lockstep.torch
from lockstep._torch_hooks import Hooks

PATIENCE = 2.0  # seconds


class Native:
    """A session whose calls wait until two are in it, or for so long."""

    def __init__(self):
        self._both = threading.Barrier(2, timeout=PATIENCE)
        self.overlaps = 0
        self.calls = []

    def call(self, what):
        self.calls.append(what)
        try:
            self._both.wait()
            self.overlaps += 1
        except threading.BrokenBarrierError:
            pass

    def ready(self, variable):
        self.call(("ready", variable))

    def await_values(self, first, count):
        self.call(("await", first, count))

    def choose_rows(self, variable, ids):
        self.call(("rows", variable))

    def pull_rows(self):
        pass

    def row_values(self, variable):
        return torch.zeros(2).numpy()


class Parts:
    """Stands for those parts of a worker that send nothing."""

    late = missing = ()

    def arrive_late(self, *_):
        pass

    def as_sent(self, _name, gradient):
        return gradient

    def __len__(self):
        return 0


def worker_of(native):
    """A worker of two parameters, as in a pass that has begun to send."""
    worker = object.__new__(lockstep.torch.Worker)
    worker._parameters = [torch.ones(2, requires_grad=True) for _ in range(2)]
    for p in worker._parameters:
        p.grad = torch.ones(2)
    worker._names, worker._sent = ["a", "b"], [False, False]
    worker._gradients = [torch.zeros(2) for _ in range(2)]
    worker._keep_gradients, worker._computes = True, True
    worker._copies, worker._tables = {}, []
    worker._values = worker._buffers = worker._places = Parts()
    worker._loop = type("Loop", (), {"native": native, "closed": False})
    worker._hooks = Hooks(worker, worker._parameters)
    worker._hooks.begin()
    return worker


class HooksTest(unittest.TestCase):

    def at_once(self, *calls):
        threads = [threading.Thread(target=call) for call in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def test_gradients_of_two_devices_are_handed_in_one_after_the_other(self):
        native = Native()
        worker = worker_of(native)
        self.at_once(lambda: worker._hooks.call(0),
                     lambda: worker._hooks.call(1))
        self.assertEqual(sorted(native.calls), [("ready", 0), ("ready", 1)])
        self.assertEqual(native.overlaps, 0)

    def test_rows_and_values_of_a_forward_wait_for_a_hook(self):
        # The forward of a checkpointed segment is in the thread of a device.
        native = Native()
        worker = worker_of(native)
        table = lockstep.torch.Embedding(rows=4, dim=2)
        table._join(worker, 0, "t")
        self.at_once(lambda: worker._hooks.call(1),
                     lambda: table(torch.tensor([3])))
        self.assertEqual(sorted(native.calls), [("ready", 1), ("rows", 0)])
        self.assertEqual(native.overlaps, 0)

        native = worker._loop.native = Native()
        worker._sent, worker._early = [False, False], True
        worker._settle = lambda: None
        values = worker._values = Parts()
        values.missing = {0}
        values.arrive = lambda *_: None
        self.at_once(lambda: worker._hooks.call(1),
                     lambda: worker._arrive([0], False))
        self.assertEqual(sorted(native.calls), [("await", 0, 1), ("ready", 1)])
        self.assertEqual(native.overlaps, 0)

    def test_after_the_end_of_a_pass_no_hook_is_at_work(self):
        # An exception of one device ends backward() while others compute.
        events = []
        goes_on = threading.Event()

        class Slow(Native):
            def ready(self, variable):
                events.append("begins")
                goes_on.wait(PATIENCE)
                events.append("ends")

        worker = worker_of(Slow())
        hook = threading.Thread(target=worker._hooks.call, args=(0,))
        hook.start()
        while not events:
            hook.join(0.001)
        threading.Timer(0.1, goes_on.set).start()
        worker._hooks.end()
        self.assertEqual(events, ["begins", "ends"])
        hook.join()
        worker._hooks.call(1)
        self.assertEqual(worker._sent, [True, False])

    def test_a_pass_calls_the_hooks_of_parameters_with_a_gradient(self):
        class Told:
            def __init__(self):
                self.complete = []

            def _on_gradient(self, i):
                self.complete.append(i)

        told, a, b = Told(), *(torch.ones(2, requires_grad=True)
                               for _ in range(2))
        hooks = Hooks(told, [a, b])
        (a * a + b).sum().backward()
        self.assertEqual(told.complete, [])
        hooks.begin()
        (a * a).sum().backward()
        self.assertEqual(told.complete, [0])
        hooks.end()
        b.sum().backward()
        self.assertEqual(told.complete, [0])
        hooks.begin()
        del told
        b.sum().backward()  # its worker is gone


if __name__ == "__main__":
    unittest.main(verbosity=2)
