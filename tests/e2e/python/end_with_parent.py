"""The process that imports this module is killed when its parent ends."""

import ctypes
import signal

PR_SET_PDEATHSIG = 1  # of <sys/prctl.h>


def end_with_parent():
    """Does so for the calling process: a fork does not inherit it."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


end_with_parent()
