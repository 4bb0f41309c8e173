"""Hooks that hear of the gradients of a backward pass."""

import functools
import threading
import weakref

import torch


class Hooks:
    """Calls ``worker._on_gradient(i)`` once the gradient of ``i`` is complete.

    Only between begin() and end(). PyTorch computes the nodes of each device in
    a thread of its own, so the hooks of a model on more than one device come at
    once, and may outlive a pass that an exception has ended. A session expects
    one call at a time, and its calls give the interpreter's lock up.

    Attributes:
      alone: a lock, which a hook holds. Whatever else a pass may call in one of
        these threads, such as the forward of a checkpointed segment, must hold
        it, too.

    Args:
      worker: held weakly. What holds its worker would keep it in the job.
      parameters: the tensors, by number.
    """

    def __init__(self, worker, parameters):
        # Of a thread, which may hold it in a forward.
        self.alone = threading.RLock()
        self.active = False
        self._worker = weakref.ref(worker)
        # PyTorch forgets a node that nobody holds.
        self._nodes = [self._add(i, p) for i, p in enumerate(parameters)]

    def _add(self, i, parameter):
        # The node that adds to .grad runs its hooks once a parameter's gradient
        # is complete, also where a parameter is used more than once.
        with torch.enable_grad():
            node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
        # A graph may hold a node for longer than the worker lives.
        this = weakref.ref(self)
        node.register_hook(functools.partial(_on_gradient, this, i))
        return node

    def begin(self):
        self.active = True

    def end(self):
        """No hook runs, or will run, when this returns."""
        # First, for an exception of a signal's handler may end the wait.
        self.active = False
        with self.alone:
            pass

    def call(self, i):
        """The gradient of ``i`` is complete. Threads: any."""
        with self.alone:
            worker = self._worker()
            if self.active and worker is not None:
                worker._on_gradient(i)


def _on_gradient(hooks, i, *_):
    hooks = hooks()
    if hooks is not None:
        hooks.call(i)
