"""Python programs that begin with torch imported.

Importing it takes three seconds of a processor, and the tests start some two
hundred programs. A process of its own (multiprocessing's fork server) imports
it once, and each program is a fork of that process. All end with the test.
"""

import atexit
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys

_context = multiprocessing.get_context("forkserver")
# Programs hold the pipe whose end would tell the server that the test is gone.
_context.set_forkserver_preload(["end_with_parent", "lockstep.torch"])


def _run(path, environment, log):
    """Runs the program at `path` as an interpreter of its own would."""
    from end_with_parent import end_with_parent
    end_with_parent()
    output = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    for fd in (1, 2):
        os.dup2(output, fd)
    os.close(output)
    sys.stdout.reconfigure(write_through=True)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = [path]
    sys.path[0] = os.path.dirname(path)
    code = 0
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as end:
        code = end.code
    except BaseException as error:
        code = 1
        try:
            sys.excepthook(type(error), error, error.__traceback__)
        except SystemExit as end:
            code = end.code
        if isinstance(error, KeyboardInterrupt):
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)
    # multiprocessing leaves them out.
    atexit._run_exitfuncs()
    sys.exit(code)


class ForkedProgram:
    """Such a process, with the methods of subprocess.Popen that tests use."""

    def __init__(self, path, environment, log):
        open(log, "ab").close()  # readers may come before the program
        self._process = _context.Process(target=_run,
                                         args=(path, environment, log))
        self._process.start()
        self.pid = self._process.pid

    def poll(self):
        return self._process.exitcode

    def wait(self, timeout=None):
        self._process.join(timeout)
        if self.poll() is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
        return self.poll()

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)
