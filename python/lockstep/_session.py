"""The loop that every kind of worker shares."""

import atexit
import os
import weakref

from . import _errors, _native, _signals
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


class _Session(_native.Session):
    """Signals end the calls that wait for a server."""

    def ready(self, variable):
        _signals.wait(super().ready, variable)

    def finish(self, loss, examples):
        _signals.wait(super().finish, loss, examples)

    def pull(self):
        _signals.wait(super().pull)

    def pull_rows(self):
        _signals.wait(super().pull_rows)


class Loop:
    """A native session, its signals and its end."""

    def __init__(self, described, name=None, tf_config=None, tls_dir=None,
                 shared_memory=True, log_level=None, chief_wait=600.0,
                 job=None, settings=(), state_dir=None, status_address=None):
        keep(None)
        tls_dir, log_level, with_parent = flags(tls_dir, log_level)
        self.native = _Session(
            tf_config or "", tls_dir, name or "", log_level, shared_memory,
            chief_wait, with_parent, os.fspath(job or ""), list(settings),
            os.fspath(state_dir or ""), status_address or "", described)
        _signals.watch(self, Loop._stop)
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
                _signals.unwatch(self)
                raise exception_of(*self.native.end())

    def _stop(self, reason, at_once):
        try:
            self.native.request_stop(reason)
            if at_once:
                # An elastic worker finishes its pass first, unless told again.
                self.native.request_stop(reason)
        except RuntimeError:
            pass  # it was closed meanwhile

    def close(self, failure=None):
        """Leaves the job; with an exception, as one that would fail again."""
        _signals.unwatch(self)
        stops = self.native.close("" if failure is None else
                                  f"{type(failure).__name__}: {failure}")
        if stops and failure is None:
            _errors.end_as_stopped()
