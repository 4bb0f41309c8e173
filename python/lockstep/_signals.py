"""Signals that end this process's part in its job.

Python runs a handler in the main thread, once that is back from the call it is
in. A call of the native module may wait for a server for as long as there is
none, so a thread hears of the signals, too, and makes the call return.
"""

import os
import signal
import threading
import time
import weakref

# Ctrl-C ends a call that lasts so much longer, in seconds: the program may go
# on after the exception, and should lose no job to a call that returns anyway.
_PATIENCE = 0.2


class _Watched:
    """A member of a job, and what ends its part."""

    def __init__(self, member, stop):
        # The handler stays as long as the process; the member need not.
        self.member = weakref.ref(member)
        self._process = os.getpid()
        self._stop = stop
        self._first = [True]

    @property
    def asked(self):
        return not self._first

    def stop(self, reason, at_once=False):
        """Returns false if this process has no such member.

        The handler and the thread both call it for one signal, which counts
        once.
        """
        member = self.member()
        # A forked child, such as a data loader's, is no member.
        if member is None or os.getpid() != self._process:
            return False
        try:
            self._first.pop()
        except IndexError:
            if not at_once:
                return True
        self._stop(member, reason, at_once)
        return True


_watched = None
_pipe = None  # its ends; the system's handler writes the numbers of signals
_begun = 0  # calls by wait()
_waits = False


def watch(member, stop):
    """Lets SIGTERM call ``stop(member, reason, at_once)``, until unwatch().

    So does Ctrl-C during a call by wait(). ``stop`` must make that call return,
    at once if ``at_once`` is true; it may be called in another thread.
    """
    global _watched
    # Python lets only the main thread set handlers.
    if threading.current_thread() is not threading.main_thread():
        return
    _watched = _Watched(member, stop)
    # Otherwise the program has a handler of its own.
    if signal.getsignal(signal.SIGTERM) in (signal.SIG_DFL, _on_sigterm):
        signal.signal(signal.SIGTERM, _on_sigterm)
    _listen()


def unwatch(member):
    """Lets SIGTERM end the process, if it was to end ``member``."""
    global _watched
    if _watched is not None and _watched.member() is member:
        _watched = None


def wait(call, *args):
    """Returns what ``call(*args)`` does, which SIGTERM and Ctrl-C may end."""
    global _begun, _waits
    _begun += 1
    _waits = True
    try:
        return call(*args)
    finally:
        _waits = False


def _on_sigterm(number, _frame):
    signal.signal(number, signal.SIG_DFL)  # a second one ends at once
    watched = _watched
    if watched is None or not watched.stop("SIGTERM"):
        os.kill(os.getpid(), number)


def _listen():
    global _pipe
    if _pipe is None:
        _pipe = os.pipe()
        os.set_blocking(_pipe[1], False)
        threading.Thread(target=_hear, args=(_pipe[0],), daemon=True,
                         name="lockstep signals").start()
    others = signal.set_wakeup_fd(_pipe[1], warn_on_full_buffer=False)
    if others not in (-1, _pipe[1]):
        # The program's, such as a loop's of asyncio. Its handlers must run; a
        # wait for a server then lasts until there is one.
        signal.set_wakeup_fd(others)


def _hear(pipe):
    while True:
        for number in os.read(pipe, 64):
            watched = _watched
            if watched is None:
                continue
            if number == signal.SIGTERM:
                # A second one, before the main thread was back for the first,
                # is for a worker that finishes its pass. In this order: the main
                # thread, which may handle the first one at any time, replaces
                # the handler before it asks.
                again = watched.asked
                if signal.getsignal(number) is _on_sigterm:
                    watched.stop("SIGTERM", at_once=again)
            elif number == signal.SIGINT and _waits and (
                    signal.getsignal(number) is signal.default_int_handler):
                begun = _begun
                time.sleep(_PATIENCE)
                if _waits and _begun == begun:
                    watched.stop("KeyboardInterrupt", at_once=True)


def _forget_in_child():
    global _pipe
    if _pipe is not None:
        # Its signals must not be taken for those of the parent.
        signal.set_wakeup_fd(-1)
        _pipe = None


os.register_at_fork(after_in_child=_forget_in_child)
