"""A stranger's C++ program, built against the installed tree, trains."""

import os
import subprocess
import sys
import tempfile
import unittest

from local_job import BIN, LocalJob

HERE = os.path.dirname(os.path.abspath(__file__))


class InstalledSessionTest(unittest.TestCase):

    def test_a_program_built_against_the_installed_tree_trains(self):
        with tempfile.TemporaryDirectory() as folder:
            prefix = os.path.join(folder, "prefix")
            build = os.path.join(folder, "build")
            for command in (
                ["cmake", "--install", os.path.dirname(BIN), "--component",
                 "session", "--prefix", prefix],
                ["cmake", "-S", os.path.join(HERE, "..", "installed_session"),
                 "-B", build, "-DCMAKE_PREFIX_PATH=" + prefix],
                ["cmake", "--build", build],
            ):
                done = subprocess.run(command, capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            with LocalJob(sets=["train_steps=300", "learning_rate=0.05"]) as job:
                job.start("worker", 0, [os.path.join(build, "stranger")])
                self.assertEqual(job.wait("worker"), 0, job.log("worker"))
                self.assertEqual(job.wait("chief"), 0)
                self.assertIn("slope 3.0", job.log("worker"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
