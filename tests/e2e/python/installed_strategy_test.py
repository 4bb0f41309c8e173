"""A stranger's C++ program, built against the installed strategies, trains."""

import os
import tempfile
import unittest

import installed


class InstalledStrategyTest(unittest.TestCase):

    def test_a_program_built_against_the_installed_library_trains(self):
        with tempfile.TemporaryDirectory() as folder:
            build = installed.build("strategy", folder)
            output = installed.run(os.path.join(build, "stranger"))
            self.assertEqual(output, "sums 6 6 slope 3.000\n")


if __name__ == "__main__":
    unittest.main(verbosity=2)
