"""torch_benchmark.py measures its cases; the argument is the folder of the build."""

import os
import re
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = sys.argv.pop() if len(sys.argv) > 1 else "build/release"


def run(*args):
    """Returns what the benchmark prints."""
    return subprocess.run(
        [sys.executable, os.path.join(HERE, "torch_benchmark.py"), BUILD,
         "--rounds", "1", *args],
        stdout=subprocess.PIPE, stderr=None, text=True, timeout=240,
        check=True).stdout


class TorchBenchmarkTest(unittest.TestCase):

    def test_a_float_has_the_step_of_both_languages_and_their_difference(self):
        text = run("--cases", "float", "--steps", "200")
        found = re.search(r"float +python ([\d.]+) ms, C\+\+ ([\d.]+) ms, "
                          r"difference (-?[\d.]+) ms", text)
        self.assertIsNotNone(found, text)
        python, cpp, more = map(float, found.groups())
        self.assertGreater(min(python, cpp), 0)
        self.assertAlmostEqual(python - cpp, more, delta=0.002)


if __name__ == "__main__":
    unittest.main()
