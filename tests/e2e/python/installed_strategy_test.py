"""A stranger's C++ program, built against the installed strategies, trains."""

import json
import os
import re
import subprocess
import tempfile
import unittest

import installed
from ports import Ports


class InstalledStrategyTest(unittest.TestCase):

    def test_a_program_built_against_the_installed_library_trains(self):
        with tempfile.TemporaryDirectory() as folder:
            build = installed.build("strategy", folder, needs=["session"])
            program = os.path.join(build, "stranger")
            output = installed.run(program)
            self.assertEqual(output, "sums 6 6 slope 3.000\n")
            self.trains_in_processes(program)
            prefix = os.path.join(folder, "prefix")
            self.assertEqual(
                installed.headers_that_need_others(prefix, folder), [])
            self.assertEqual(installed.includes_that_lack(prefix), [])

    def test_the_page_builds_what_it_installs(self):
        page = os.path.join(os.environ["LOCKSTEP_SOURCE"], "strategy/README.md")
        with open(page) as file:
            commands = re.findall("^    (cmake .*)", file.read(), re.MULTILINE)
        built = set()
        installed_ones = []
        for command in commands:
            if "--target" in command:
                built.update(command.split("--target")[1].split())
            if "--component" in command:
                component = command.split("--component")[1].split()[0]
                installed_ones.append(component)
                self.assertIn(f"lockstep_{component}_shared", built)
        self.assertEqual(installed_ones, ["strategy", "session"])

    def trains_in_processes(self, program):
        ports = Ports()
        self.addCleanup(ports.close)
        addresses = [ports.address() for _ in range(2)]
        workers = []
        for index in range(2):
            environment = dict(os.environ, TF_CONFIG=json.dumps({
                "cluster": {"worker": addresses},
                "task": {"type": "worker", "index": index}}))
            workers.append(subprocess.Popen(
                [program, "join"], env=environment, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True))
        for worker in workers:
            self.assertEqual(worker.communicate(timeout=120)[0], "sum 6\n")


if __name__ == "__main__":
    unittest.main(verbosity=2)
