"""A forked program ends as one of an interpreter of its own does."""

import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from needs import need

need("torch")

from forked_programs import ForkedProgram

# Starts a program that sleeps, says its process, and waits to be killed.
TEST = """
import os, time
from forked_programs import ForkedProgram
if __name__ == "__main__":
    program = ForkedProgram({path!r}, dict(os.environ), {log!r})
    print(program.pid, flush=True)
    time.sleep(60)
"""


class ForkedProgramsTest(unittest.TestCase):

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.log = os.path.join(self.folder.name, "log")

    def write(self, program):
        path = os.path.join(self.folder.name, "program.py")
        with open(path, "w") as f:
            f.write(program)
        return path

    def start(self, program, **environment):
        return ForkedProgram(self.write(program),
                             dict(os.environ, **environment), self.log)

    def wait_for_log(self, text):
        end = time.monotonic() + 60
        while text not in self.read_log() and time.monotonic() < end:
            time.sleep(0.02)
        self.assertIn(text, self.read_log())

    def read_log(self):
        with open(self.log) as f:
            return f.read()

    def test_it_begins_with_torch_and_its_own_environment(self):
        program = self.start(
            "import os, sys\n"
            "print('torch' in sys.modules, __name__, os.environ['OWN'])\n",
            OWN="mine")
        self.assertEqual(program.wait(60), 0)
        self.assertEqual(self.read_log(), "True __main__ mine\n")

    def test_its_exit_code_is_that_of_an_interpreter(self):
        self.assertEqual(self.start("import sys; sys.exit(3)").wait(60), 3)
        self.assertEqual(self.start("raise ValueError('wrong')").wait(60), 1)
        self.assertIn("ValueError: wrong", self.read_log())
        self.assertEqual(
            self.start("import lockstep\n"
                       "error = lockstep.Refused('no')\n"
                       "error.exit_code = 65\n"
                       "raise error\n").wait(60), 65)

    def test_handlers_at_exit_run(self):
        self.assertEqual(
            self.start("import atexit\n"
                       "atexit.register(lambda: print('end'))\n").wait(60), 0)
        self.assertIn("end", self.read_log())

    def test_signals_end_it(self):
        for number in (signal.SIGINT, signal.SIGKILL):
            open(self.log, "w").close()
            program = self.start("import time; print('up'); time.sleep(60)")
            self.wait_for_log("up")
            program.send_signal(number)
            self.assertEqual(program.wait(60), -number)

    def test_nothing_outlives_a_test_that_is_killed(self):
        path = self.write("import time; print('up'); time.sleep(60)")
        script = os.path.join(self.folder.name, "test.py")
        with open(script, "w") as f:
            f.write(TEST.format(path=path, log=self.log))
        here = os.path.dirname(os.path.abspath(__file__))
        test = subprocess.Popen(
            [sys.executable, script], stdout=subprocess.PIPE, text=True,
            env=dict(os.environ, PYTHONPATH=os.pathsep.join(
                (here, os.environ["PYTHONPATH"]))))
        pid = int(test.stdout.readline())
        self.wait_for_log("up")
        test.kill()
        test.wait()
        test.stdout.close()
        end = time.monotonic() + 20
        while os.path.exists(f"/proc/{pid}") and time.monotonic() < end:
            time.sleep(0.02)
        self.assertFalse(os.path.exists(f"/proc/{pid}"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
