"""The loop that every kind of worker shares."""

import atexit
import collections.abc
import multiprocessing
import numbers
import os
import threading

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


def _path(what, value):
    """A path, or None, as str; TypeError: it is neither."""
    try:
        return os.fsdecode(value) if value is not None else ""
    except TypeError:
        raise TypeError(f"{what} is {value!r}; give a str or a "
                        "pathlib.Path") from None


def _text(what, value):
    """A str, or None, as str; TypeError: it is neither."""
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{what} is {value!r}; give a str")
    return value or ""


def _texts(what, values):
    """A list of str; TypeError: it is none."""
    if (isinstance(values, (str, bytes, collections.abc.Mapping))
            or not isinstance(values, collections.abc.Iterable)):
        raise TypeError(f"{what} is {values!r}; give a list of str, as in "
                        f'{what}=["key=value"]')
    return [_text(f"{what}[{i}]", value) for i, value in enumerate(values)]


def _flag(what, value):
    """A bool, or None for false; TypeError: a str, which would be true."""
    if isinstance(value, str):
        raise TypeError(f"{what} is {value!r}; give True or False")
    return bool(value)


def number(what, value):
    """Returns a number as float; TypeError: it is none, or several."""
    try:
        return float(value)
    # A tensor of several elements is a ValueError or a RuntimeError.
    except (TypeError, ValueError, OverflowError, RuntimeError):
        raise TypeError(f"{what} is {value!r:.200}; give a number") from None


def seconds(what, value):
    """A number as float, 0 for no limit.

    Raises: TypeError: it is none; ValueError: it is negative, or NaN.
    """
    if not isinstance(value, numbers.Real):
        raise TypeError(f"{what} is {value!r}; give a number of seconds")
    if not value >= 0:
        raise ValueError(f"{what} is {value!r}; give a number of seconds, or 0 "
                         "for no limit")
    return float(value)


def check_process():
    """RuntimeError: multiprocessing is still starting this process.

    Such a child imports the parent's program to know its functions. What that
    runs unguarded would make the child the parent's task of the job, and the
    parent would lose it.
    """
    # What multiprocessing itself goes by to refuse a child of such a child.
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise RuntimeError(
            "this process is a child that multiprocessing is still starting, as "
            "for a DataLoader with workers by spawn or forkserver: it imports "
            "the program, and would take its parent's place in the job; put "
            "what the program does below the line\n\n"
            '    if __name__ == "__main__":\n')


def membership(name, tf_config, tls_dir, log_level):
    """Returns what workers and evaluators have in common, with its defaults:
    (tf_config, tls_dir, name, log_level, exit_with_parent).

    Raises: TypeError: one of another type; the message has the fix.
    """
    return (_path("tf_config", tf_config),
            _path("tls_dir", tls_dir) or os.environ.get("LOCKSTEP_TLS_DIR", ""),
            _text("name", name),
            _text("log_level", log_level) or os.environ.get(
                "LOCKSTEP_LOG_LEVEL", "warning"),
            os.environ.get("LOCKSTEP_EXIT_WITH_PARENT", "") == "1")


# A worker may be gone because of an exception that ends the program. Its job
# must hear of that exception at exit, which is so much later at most, in
# seconds.
_LINGERS = 1.0
_left = None  # the loop of a worker that is gone, until it leaves its job


def leave_soon(loop):
    """The worker of a loop is gone: the loop leaves its job, in a second.

    It does so before if the program ends or makes another worker.
    """
    global _left
    if loop.closed:
        return
    _signals.unwatch(loop)
    _left = loop
    timer = threading.Timer(_LINGERS, _leave, [loop])
    timer.daemon = True
    try:
        timer.start()
    except RuntimeError:
        pass  # the interpreter ends, and its exit closes the loop


def _leave(loop):
    global _left
    if loop is None:
        return
    loop.close(_errors.uncaught())
    if _left is loop:
        _left = None


class _Session(_native.Session):
    """Signals end the calls that wait for a server."""

    def await_values(self, first, count):
        _signals.wait(super().await_values, first, count)

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
                 job=None, settings=(), state_dir=None, status_address=None,
                 early=False):
        check_process()
        tf_config, tls_dir, name, log_level, with_parent = membership(
            name, tf_config, tls_dir, log_level)
        hosted = (_path("job", job), _texts("settings", settings),
                  _path("state_dir", state_dir),
                  _text("status_address", status_address))
        shared_memory = _flag("shared_memory", shared_memory)
        early = _flag("early", early)
        chief_wait = seconds("chief_wait", chief_wait)
        _leave(_left)  # a process can have one session at a time
        self.closed = False
        self._closes = threading.RLock()
        self._process = os.getpid()
        self.native = _Session(
            tf_config, tls_dir, name, log_level, shared_memory, chief_wait,
            with_parent, early, *hosted, described)
        _signals.watch(self, Loop._stop)
        # Its threads may not outlive the interpreter.
        atexit.register(self._at_exit)

    def wait(self, choose):
        """Returns the next pass: (number, share, replica, batch, seed, membership,
        early).

        ``choose`` is called where rows of tables must be chosen. Raises
        JobEnded, or the exception that the end of the job calls for.
        """
        while True:
            turn, step = self.native.next(WAIT)
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

    def _at_exit(self):
        self.close(_errors.uncaught())

    def close(self, failure=None):
        """Leaves the job; with an exception, as one that would fail again."""
        if os.getpid() != self._process:
            # A forked child has no job to leave. Its copy of the lock may be
            # taken.
            self.native.close()
            return
        # The exit must wait for a thread that is about to close the session.
        with self._closes:
            if self.closed:
                return
            self.closed = True
            _signals.unwatch(self)
            stops = self.native.close("" if failure is None else
                                      _errors.reason_of(failure))
            if stops and failure is None:
                _errors.end_as_stopped()
            atexit.unregister(self._at_exit)
