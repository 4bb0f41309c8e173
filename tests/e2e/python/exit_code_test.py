"""Exit codes of programs that end with an exception of the package."""

import os
import subprocess
import sys
import unittest


class ExitCodeTest(unittest.TestCase):

    def test_an_exception_with_an_exit_code_leaves_out_no_handler(self):
        # Those of modules that were imported before run after the package's.
        done = subprocess.run([sys.executable, "-c", """
import atexit, multiprocessing.util
atexit.register(lambda: print("handled", flush=True))
import lockstep
child = multiprocessing.get_context("fork").Process(
    target=__import__("time").sleep, args=(60,), daemon=True)
child.start()
print(child.pid)
raise lockstep.JobStopped("by order", 143)
"""], capture_output=True, text=True, timeout=50)
        self.assertEqual(done.returncode, 143)
        self.assertEqual(done.stderr, "lockstep: JobStopped: by order\n")
        child, handled = done.stdout.split()
        self.assertEqual(handled, "handled")
        self.assertFalse(os.path.exists(f"/proc/{child}"))

    def test_an_exception_has_its_exit_code_under_another_hook_too(self):
        # As that of a library which prints exceptions in its own way.
        hook = "sys.excepthook = lambda kind, value, _: print(repr(value))"
        for raised, code in (("lockstep.JobStopped('by order', 143)", 143),
                             ("lockstep.JobFailed('no chief', 129)", 129),
                             ("ValueError('a fault')", 1)):
            with self.subTest(raised):
                done = subprocess.run([sys.executable, "-c", f"""
import atexit, sys, lockstep
atexit.register(lambda: print(repr(lockstep._errors.uncaught())))
{hook}
raise {raised}
"""], capture_output=True, text=True, timeout=50)
                self.assertEqual(done.returncode, code, done.stderr)
                shown, fault = done.stdout.splitlines()
                self.assertIn(shown.split("(")[0], raised)
                self.assertEqual(fault, shown if code == 1 else "None")

    def test_an_exception_leaves_the_prompt_of_python_i(self):
        for flags, inspect in (["-i"], ""), ([], "1"):
            with self.subTest(flags=flags):
                done = subprocess.run(
                    [sys.executable, *flags, "-c", "import lockstep; "
                     "raise lockstep.JobStopped('by order', 143)"],
                    input="print('at the prompt')\n", capture_output=True,
                    text=True, timeout=50,
                    env={**os.environ, "PYTHONINSPECT": inspect})
                self.assertIn("lockstep: JobStopped: by order", done.stderr)
                self.assertNotIn("Error in sys.excepthook", done.stderr)
                if flags:  # otherwise the prompt needs a terminal
                    self.assertIn("at the prompt", done.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
