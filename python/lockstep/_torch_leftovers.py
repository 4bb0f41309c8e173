"""What a backward pass leaves behind that an exception in a hook has ended."""

import threading

import torch


class Leftovers:
    """Drops the nodes that wait in PyTorch's queue after such a pass.

    The queue is the thread's, and outlives the graph: until the thread ends it
    keeps what the nodes have saved. In the main thread that is after the end of
    the interpreter, where a tensor that Python has made waits for ever for the
    interpreter's lock. The queue yields younger nodes first and skips those whose
    pass is over, so a pass through a node that is older than all drops them.

    Threads: any; each has a queue and an oldest node of its own.
    """

    def __init__(self):
        self._of_thread = threading.local()

    def begin(self):
        """Must be called before a thread makes the first node of a step."""
        if not hasattr(self._of_thread, "oldest"):
            with torch.enable_grad():
                # A node of a GPU would wait in another queue.
                self._of_thread.oldest = 2 * torch.zeros(
                    (), requires_grad=True, device="cpu")

    def drop(self):
        oldest = getattr(self._of_thread, "oldest", None)
        if oldest is not None:
            oldest.backward(retain_graph=True)
