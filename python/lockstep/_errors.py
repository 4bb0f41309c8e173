"""Exceptions of the package, and the exit codes that launchers expect."""

import atexit
import glob
import importlib.machinery
import os
import re
import sys
import traceback


class Error(RuntimeError):
    """This process can no longer take part in its job, for the reason given.

    If the exception is not caught, the process ends with ``exit_code``: 1 to
    127 ask for no restart, 128 and above ask for one.
    """

    exit_code = 1

    def __init__(self, message, exit_code=1):
        super().__init__(message)
        self.exit_code = exit_code


class JobFailed(Error):
    """The job failed, or its chief is gone."""


class JobStopped(Error):
    """The job, or this worker, was stopped before the job was done."""


class Refused(Error):
    """This process cannot take part: its model, data or job differs from the
    job's, it has sent a gradient that is not finite, or memory is missing."""


def need_native(folders):
    """ImportError: no folder has the native module for this interpreter."""
    if importlib.machinery.PathFinder.find_spec("_native", folders):
        return
    here = f"Python {sys.version_info[0]}.{sys.version_info[1]}"
    fix = ("run `pip install ./python` with this interpreter, in Lockstep's "
           "source tree")
    there = [path for folder in folders
             for path in glob.glob(os.path.join(glob.escape(folder),
                                                "_native.*.so"))]
    if not there:
        raise ImportError(
            f"lockstep's native module is not built in {folders[0]}: {fix}, or "
            "build the target lockstep_python and put build/release/python on "
            f"PYTHONPATH; this is {here}")
    built = re.search(r"cpython-(\d)(\d+)", os.path.basename(there[0]))
    raise ImportError(
        "lockstep's native module is built for "
        + (f"Python {built[1]}.{built[2]}" if built else "another interpreter")
        + f" ({there[0]}); this is {here}: {fix}")


# What a process ends with that has left a job by order: it asks for a restart.
_STOPPED = 143

_stops_job = False  # see end_as_stopped()
_uncaught = None
_has_code = False  # of an exception of this package
_previous_hook = sys.excepthook


def fault(error):
    """The error, if it shows a fault of the program; otherwise None."""
    ends = isinstance(error, (Error, GeneratorExit, KeyboardInterrupt,
                              SystemExit))
    return None if ends else error


def utf8(text):
    """A text as the native module takes it: without the bytes of file names
    that are no UTF-8, which Python has as lone surrogates."""
    return text.encode(errors="backslashreplace").decode()


def reason_of(fault):
    """What the job is told of a fault of the program, whatever its text is."""
    try:
        text = str(fault)
    except Exception:
        text = "its text cannot be made"
    return utf8(f"{type(fault).__name__}: {text}")


def _goes_on():
    """At the prompt of an interpreter the program goes on after an exception.

    `python3 -i` has the prompt after the program, and takes no SystemExit.
    """
    return (hasattr(sys, "ps1") or bool(sys.flags.inspect) or
            bool(os.environ.get("PYTHONINSPECT")))


def _ended_with():
    """The exception that ends the main thread, where another library's hook has
    taken the place of this module's and does not call it; or None."""
    if sys.excepthook is _hook or _goes_on():
        return None
    return getattr(sys, "last_value", None)


def uncaught():
    """The fault that ends the main thread, if one does."""
    if _uncaught is not None:
        return _uncaught
    ended = _ended_with()
    return None if ended is None else fault(ended)


def end_as_stopped():
    """The process was the last place of its job's chief or state: an exit code
    of 0 would say that the job is done."""
    global _stops_job
    _stops_job = True


def _hook(kind, value, trace):
    global _has_code, _uncaught
    goes_on = _goes_on()
    _uncaught = None if goes_on else fault(value)
    if not issubclass(kind, Error):
        _previous_hook(kind, value, trace)
        return
    # Where the program was matters for a fault of the program alone.
    if isinstance(value, Refused):
        traceback.print_exception(kind, value, trace)
    else:
        print(f"lockstep: {kind.__name__}: {value}", file=sys.stderr)
    if not goes_on:
        _has_code = True
        # The interpreter would end with 1, whatever the exception says. A
        # SystemExit of this function ends it as any other does.
        raise SystemExit(value.exit_code)


def _exit_as_stopped():
    if _has_code:
        return
    ended = _ended_with()
    if isinstance(ended, Error):
        code = ended.exit_code
    elif _stops_job:
        code = _STOPPED
    else:
        return
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass
    # The interpreter would end with 0, as after any program without an
    # exception, or with 1, as after any with one. This leaves out the handlers of modules imported before.
    os._exit(code)


sys.excepthook = _hook
# Handlers run in the reverse order of their registration: this one comes after
# those of modules that are imported later.
atexit.register(_exit_as_stopped)
