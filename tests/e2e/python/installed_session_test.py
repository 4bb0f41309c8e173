"""A stranger's C++ program, built against the installed tree, trains."""

import os
import tempfile
import unittest

import installed
from local_job import LocalJob


class InstalledSessionTest(unittest.TestCase):

    def test_a_program_built_against_the_installed_tree_trains(self):
        with tempfile.TemporaryDirectory() as folder:
            build = installed.build("session", folder)
            with LocalJob(sets=["train_steps=300", "learning_rate=0.05"]) as job:
                job.start("worker", 0, [os.path.join(build, "stranger")])
                self.assertEqual(job.wait("worker"), 0, job.log("worker"))
                self.assertEqual(job.wait("chief"), 0)
                self.assertIn("slope 3.0", job.log("worker"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
