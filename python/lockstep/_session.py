"""The loop that every kind of worker shares, and the signals of a process."""

import atexit
import os
import signal
import threading
import weakref

from . import _errors, _native
from ._errors import JobFailed, JobStopped, Refused

Unwanted = _native.Unwanted

# A wait is cut into pieces of this length, so that signals are noticed.
WAIT = 0.1

_NOTHING, _ROWS, _STEP, _ENDED = range(4)


class JobEnded(Exception):
    """The job is done: internal."""


def exception_of(code, message, exit_code):
    """Returns what a job's end calls for: JobEnded where it is done."""
    if code == "OK":
        return JobEnded()
    if code == "CANCELLED":
        return JobStopped(message, exit_code)
    if code in ("ABORTED", "UNAVAILABLE", "DEADLINE_EXCEEDED"):
        return JobFailed(message, exit_code)
    return Refused(message, exit_code)


def flags(tls_dir, log_level):
    """Returns (tls_dir, log_level, exit_with_parent), with their defaults."""
    return (tls_dir or os.environ.get("LOCKSTEP_TLS_DIR", ""),
            log_level or os.environ.get("LOCKSTEP_LOG_LEVEL", "warning"),
            os.environ.get("LOCKSTEP_EXIT_WITH_PARENT", "") == "1")


# The member that SIGTERM ends: (weak reference, stop, process).
_watched = None


def _on_sigterm(number, _frame):
    signal.signal(number, signal.SIG_DFL)  # a second one ends at once
    this, stop, process = _watched or (lambda: None, None, 0)
    member = this()
    # A forked child, such as a data loader's, is no member.
    if member is not None and os.getpid() == process:
        stop(member)
    else:
        os.kill(os.getpid(), number)


def watch_sigterm(member, stop):
    """Lets SIGTERM call ``stop(member)``, until unwatch_sigterm(member)."""
    global _watched
    # Python lets only the main thread set handlers.
    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGTERM) not in (signal.SIG_DFL, _on_sigterm):
        return  # the program has a handler of its own
    # The handler stays as long as the process; the member need not.
    _watched = weakref.ref(member), stop, os.getpid()
    signal.signal(signal.SIGTERM, _on_sigterm)


def unwatch_sigterm(member):
    """Lets SIGTERM end the process, if it was to end ``member``."""
    global _watched
    if _watched is not None and _watched[0]() is member:
        _watched = None


def interruptible(call, stop):
    """Returns what ``call()`` does; signals are handled while it waits.

    ``stop()`` must make the call return.
    """
    outcome = []

    def run():
        try:
            outcome.append((call(), None))
        except BaseException as error:
            outcome.append((None, error))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(WAIT)
    except BaseException:  # of a signal's handler
        stop()
        thread.join()
        raise
    result, error = outcome[0]
    if error is not None:
        raise error
    return result


def close_at_exit(member, close):
    """A thread of a member may not outlive the interpreter."""
    this = weakref.ref(member)
    atexit.register(lambda: this() and close(this()))


# A loop that nobody else holds, until the exit or the next one.
_kept = None


def keep(loop):
    """Lets a loop last that would else leave its job."""
    global _kept
    _kept = loop


class Loop:
    """A native session, its signals and its end."""

    def __init__(self, described, name=None, tf_config=None, tls_dir=None,
                 shared_memory=True, log_level=None, chief_wait=600.0,
                 job=None, settings=(), state_dir=None, status_address=None):
        keep(None)
        tls_dir, log_level, with_parent = flags(tls_dir, log_level)
        self.native = _native.Session(
            tf_config or "", tls_dir, name or "", log_level, shared_memory,
            chief_wait, with_parent, os.fspath(job or ""), list(settings),
            os.fspath(state_dir or ""), status_address or "", described)
        watch_sigterm(self, lambda loop: loop.native.request_stop("SIGTERM"))
        close_at_exit(self, lambda loop: loop.close(_errors.uncaught()))

    def wait(self, choose):
        """Returns (number, share, batch, seed, membership) of the next pass.

        ``choose`` is called where rows of tables must be chosen. Raises
        JobEnded, or the exception that the end of the job calls for.
        """
        while True:
            turn, *step = self.native.next(WAIT)
            if turn == _STEP:
                return step
            if turn == _ROWS:
                try:
                    choose(step)
                    self.native.pull()
                # The step is over without this pass: next() has the one that
                # follows.
                except Unwanted:
                    pass
            elif turn == _ENDED:
                # What the program does from here on is its own.
                unwatch_sigterm(self)
                raise exception_of(*self.native.end())

    def close(self, failure=None):
        """Leaves the job; with an exception, as one that would fail again."""
        unwatch_sigterm(self)
        stops = self.native.close("" if failure is None else
                                  f"{type(failure).__name__}: {failure}")
        if stops and failure is None:
            _errors.end_as_stopped()
