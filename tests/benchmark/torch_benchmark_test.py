"""torch_benchmark.py measures its cases.

Arguments: classes of tests, default all, and the folder of the build.
"""

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import unittest

from killed_torch_worker import longest_pause, step_times
from torch_benchmark import own_host

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = sys.argv.pop() if len(sys.argv) > 1 else "build/release"

UNPROVED = "SKIPPED, NOTHING WAS PROVED: "
HAS_TORCH = importlib.util.find_spec("torch") is not None
OWN_HOSTS = subprocess.run([*own_host(), "true"], check=False,
                           stderr=subprocess.DEVNULL).returncode == 0
HAS_TORCHFT = importlib.util.find_spec("torchft") is not None

# The calls of torchft that the benchmark needs; its replicas exchange nothing.
TORCHFT = """
class ProcessGroupGloo:
    def __init__(self, timeout):
        pass

class Manager:
    def __init__(self, pg, min_replica_size, load_state_dict, state_dict,
                 replica_id, timeout, store_addr, store_port, rank, world_size):
        self.step = 0
        self.state_dict = state_dict
    def current_step(self):
        return self.step
    def shutdown(self, wait):
        assert set(self.state_dict()) == {"model", "optim"}

def DistributedDataParallel(manager, module):
    return module

class Optimizer:
    def __init__(self, manager, optimizer):
        self.manager, self.optimizer = manager, optimizer
        self.state_dict = optimizer.state_dict
    def zero_grad(self):
        self.optimizer.zero_grad()
    def step(self):
        self.optimizer.step()
        self.manager.step += 1
"""
COORDINATION = """
class LighthouseServer:
    def __init__(self, bind, min_replicas):
        assert min_replicas == 2
    def address(self):
        return "http://localhost:1"
    def shutdown(self):
        pass
"""


def run(*args, path=""):
    """Returns what the benchmark prints; `path`: a folder of more modules."""
    return subprocess.run(
        [sys.executable, os.path.join(HERE, "torch_benchmark.py"), BUILD,
         "--rounds", "1", *args],
        env=dict(os.environ, PYTHONPATH=path) if path else None,
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

    @unittest.skipIf(HAS_TORCHFT, UNPROVED + "torchft is installed")
    def test_torchft_is_named_where_it_is_not_installed(self):
        text = run("--cases", "float", "--steps", "20")
        self.assertIn("torchft: not installed\n", text)
        self.assertNotIn("torchft ms", text)


@unittest.skipUnless(HAS_TORCH, UNPROVED + "this interpreter has no torch "
                     "(Debian: python3-torch)")
class LongTorchBenchmarkTest(unittest.TestCase):
    """Half a minute of both processors."""

    def test_torchft_has_a_column_where_it_is_installed(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "torchft"))
            for name, text in (("__init__", TORCHFT),
                               ("coordination", COORDINATION)):
                with open(os.path.join(folder, "torchft", name + ".py"),
                          "w") as f:
                    f.write(text)
            text = run("--cases", "mlp", "--steps", "20", path=folder)
        self.assertNotIn("not installed", text)
        self.assertRegex(text, r"case +ddp ms +torchft ms +ratio +grpc ms")
        self.assertRegex(text, r"mlp( +[\d.]+){7}\n")

    @unittest.skipUnless(OWN_HOSTS,
                         UNPROVED + "this system grants no name spaces")
    def test_mirrors_have_columns_as_on_two_hosts_and_on_one(self):
        text = run("--cases", "mlp", "--steps", "20",
                   "--columns", "mirrors,mirrors_shared")
        self.assertRegex(text, r"ddp ms +mirrors ms +ratio +mirrors_shared ms")
        self.assertRegex(text, r"mlp( +[\d.]+){5}\n")

    def test_a_killed_worker_has_a_pause_of_the_others_and_its_own_return(self):
        text = run("--cases", "killed", "--kills", "1")
        for name in ("pause", "before", "rejoined"):
            found = re.search(rf"killed +{name} +median ([\d.]+) s, "
                              r"max ([\d.]+) s, 1 kills", text)
            self.assertIsNotNone(found, text)
            self.assertGreater(float(found.group(1)), 0)
            self.assertEqual(found.group(1), found.group(2))


class PauseTest(unittest.TestCase):

    def test_repeated_passes_are_no_steps(self):
        log = ("IMPORTED 1.0\nSTEP 4 2.0\nSTEP 4 2.5\n2026 info worker\n"
               "STEP 6 3.25\nSTEP 5 4.0\nSTEP 7 4.5\n")
        self.assertEqual(step_times(log), [2.0, 3.25, 4.5])

    def test_pauses_that_begin_before_and_end_after_count_in_whole(self):
        times = [0.0, 5.0, 6.0, 8.0, 12.0, 30.0]
        self.assertEqual(longest_pause(times, 5.5, 7.0), 2.0)
        self.assertEqual(longest_pause(times, 1.0, 7.0), 5.0)
        self.assertEqual(longest_pause(times, 7.0, 11.0), 4.0)

    def test_a_worker_that_makes_no_more_steps_pauses_until_the_end(self):
        self.assertEqual(longest_pause([1.0, 2.0], 1.5, 9.0), 7.0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
