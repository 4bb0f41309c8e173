"""A stranger's C++ program, built against the installed tree, trains."""

import os
import re
import tempfile
import unittest

import installed
from local_job import LocalJob


# The program around the loop of worker/README.md.
BEFORE = """#include <vector>
float Compute(const std::vector<int64_t>&, absl::Span<const std::byte>,
              absl::Span<std::byte>);
int main() {
  const int64_t num_examples = 8;
  const absl::Span<const std::byte> initial;
"""


def check_the_loop_of_the_page(folder):
    page = os.path.join(os.environ["LOCKSTEP_SOURCE"], "worker", "README.md")
    with open(page, encoding="utf-8") as file:
        loop = re.search("```cpp\n(#include [^\n]*\n)(.*?)```", file.read(),
                         re.DOTALL)
    program = os.path.join(folder, "loop.cc")
    with open(program, "w", encoding="utf-8") as file:
        file.write(loop[1] + BEFORE + loop[2] + "}\n")
    include = os.path.join(folder, "prefix/include/lockstep")
    installed.run(os.environ.get("CXX", "c++"), "-std=c++20", "-fsyntax-only",
                  "-I", include, program)


class InstalledSessionTest(unittest.TestCase):

    def test_a_program_built_against_the_installed_tree_trains(self):
        with tempfile.TemporaryDirectory() as folder:
            build = installed.build("session", folder)
            check_the_loop_of_the_page(folder)
            with LocalJob(sets=["train_steps=300", "learning_rate=0.05"]) as job:
                job.start("worker", 0, [os.path.join(build, "stranger")])
                self.assertEqual(job.wait("worker"), 0, job.log("worker"))
                self.assertEqual(job.wait("chief"), 0)
                self.assertIn("slope 3.0", job.log("worker"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
