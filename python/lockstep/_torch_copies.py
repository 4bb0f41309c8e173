"""Gradients of a GPU, on their way to the memory that they are sent from."""

import collections

import torch


class HostCopies:
    """Copies gradients to the host while the backward pass goes on.

    The copies run on a stream of their own, into page-locked memory: from other
    memory a GPU copies only while the program waits. ``settle`` hands each
    gradient in as its copy arrives, so that sending begins while the GPU still
    computes those of the layers before.

    Threads: one at a time; autograd's thread of the device calls ``start`` while
    the program's waits for it. ``hand_in`` may be that of other devices, too: the
    hooks that call ``start`` hold one lock (_torch_hooks.py).

    Args:
      device: the GPU.
      hand_in: called with the number of a gradient that is in its memory.
      cuda: torch.cuda; tests give another.
      page_locked: makes memory of a tensor's shape and dtype on the host.
    """

    def __init__(self, device, hand_in, cuda=torch.cuda, page_locked=None):
        self._cuda = cuda
        self._device = device
        self._hand_in = hand_in
        self._page_locked = page_locked or _page_locked
        self._stream = cuda.Stream(device)
        self._staging = {}
        self._pending = collections.deque()

    def start(self, i, gradient, target):
        """Begins to copy ``gradient``, which is that of variable ``i``.

        Args:
          gradient: tensor on the device, complete in its current stream.
          target: tensor on the host, of the same shape and dtype; written by
            ``settle``.
        """
        staging = self._staging.get(i)
        if staging is None:
            staging = self._staging[i] = self._page_locked(target)
        # The copy begins once the gradient is complete.
        self._stream.wait_stream(self._cuda.current_stream(self._device))
        with self._cuda.stream(self._stream):
            staging.copy_(gradient, non_blocking=True)
        # Its memory must not be used again before the copy has read it.
        if gradient.is_cuda:
            gradient.record_stream(self._stream)
        event = self._cuda.Event()
        event.record(self._stream)
        self._pending.append((event, i, staging, target))
        # In the order of their start, even if a later copy is complete.
        while self._pending and self._pending[0][0].query():
            self._hand_in_first()

    def settle(self):
        """Hands in all gradients that were started, in that order, as they arrive.

        Raises: the errors of ``hand_in``; nothing is pending then.
        """
        try:
            while self._pending:
                self._pending[0][0].synchronize()
                self._hand_in_first()
        finally:
            self.drop()

    def drop(self):
        """Forgets the copies that were started: the pass is not wanted."""
        while self._pending:
            # The next pass writes to the same memory.
            self._pending.popleft()[0].synchronize()

    def _hand_in_first(self):
        _, i, staging, target = self._pending.popleft()
        target.copy_(staging)
        self._hand_in(i)


def _page_locked(like):
    # The program may have another default device.
    return torch.empty(like.shape, dtype=like.dtype, device="cpu",
                       pin_memory=True)
