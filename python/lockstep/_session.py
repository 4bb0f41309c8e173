"""The loop that every kind of worker shares."""

import atexit
import os
import signal
import threading
import weakref

from . import _native
from ._errors import JobFailed, JobStopped, Refused

Unwanted = _native.Unwanted

# A wait is cut into pieces of this length, so that signals are noticed.
_WAIT = 0.1

_NOTHING, _ROWS, _STEP, _ENDED = range(4)


class JobEnded(Exception):
    """The job is done: internal."""


class Loop:
    """A native session, its signals and its end."""

    def __init__(self, described, name=None, tf_config=None, tls_dir=None,
                 shared_memory=True, log_level=None, chief_wait=600.0):
        self._native = _native.Session(
            tf_config or "",
            tls_dir or os.environ.get("LOCKSTEP_TLS_DIR", ""), name or "",
            log_level or os.environ.get("LOCKSTEP_LOG_LEVEL", "warning"),
            shared_memory, chief_wait,
            os.environ.get("LOCKSTEP_EXIT_WITH_PARENT", "") == "1", described)
        self.native = self._native
        self._watch_sigterm()
        # A thread of the session may not outlive the interpreter.
        closer = weakref.ref(self)
        atexit.register(lambda: closer() and closer().close())

    def _watch_sigterm(self):
        if threading.current_thread() is not threading.main_thread():
            return
        if signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
            return  # the program has a handler of its own
        this = weakref.ref(self)

        def stop(number, _frame):
            loop = this()
            signal.signal(number, signal.SIG_DFL)  # a second one ends at once
            if loop is not None:
                loop.native.request_stop("SIGTERM")
            else:
                os.kill(os.getpid(), number)

        signal.signal(signal.SIGTERM, stop)

    def wait(self, choose=None):
        """Returns (number, share, batch, seed, membership) of the next pass.

        ``choose`` is called where rows of tables must be chosen. Raises
        JobEnded, or the exception that the end of the job calls for.
        """
        while True:
            turn, *step = self.native.next(_WAIT)
            if turn == _STEP:
                return step
            if turn == _ROWS:
                try:
                    choose(step)
                    self.native.pull()
                except Unwanted:
                    pass
            elif turn == _ENDED:
                raise self._end()

    def _end(self):
        code, message, exit_code = self.native.end()
        if code == "OK":
            return JobEnded()
        if code == "CANCELLED":
            return JobStopped(message, exit_code)
        if code in ("ABORTED", "UNAVAILABLE", "DEADLINE_EXCEEDED"):
            return JobFailed(message, exit_code)
        return Refused(message, exit_code)

    def close(self):
        self.native.close()
