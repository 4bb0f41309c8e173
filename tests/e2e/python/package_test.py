"""The package from pip, without a network, and as a Debian package."""

import glob
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

from local_job import BIN, LocalJob

SOURCE = os.path.join(os.environ["LOCKSTEP_SOURCE"], "python")
PROGRAM = """
import lockstep, numpy as np
print("from", lockstep.__file__)
worker = lockstep.Worker({"w": np.ones(2, np.float32)})
for step in worker.steps():
    step.push({"w": step.values["w"]})
"""


def missing_tools():
    probe = ("import importlib.util as u, sys; sys.exit(not all(map(u.find_spec,"
             "('ensurepip', 'pip', 'setuptools', 'wheel'))))")
    return subprocess.run([sys.executable, "-c", probe],
                          capture_output=True).returncode != 0


class PackageCase(unittest.TestCase):
    """A copy of the package's sources, in a folder that is no tree."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        # pip leaves files beside the sources.
        shutil.copytree(SOURCE, self.path("python"))
        # Without PYTHONPATH: the package must come from the environment.
        self.env = {key: value for key, value in os.environ.items()
                    if key not in ("PYTHONPATH", "MYPYPATH")}
        # Relative to the folder of the folder "python", as a user writes it.
        os.symlink(os.path.dirname(BIN), self.path("build"))
        self.env["LOCKSTEP_BUILD_DIR"] = "build"

    def pip_wheel(self):
        return subprocess.run(
            [sys.executable, "-m", "pip", "wheel", "--no-build-isolation",
             "--no-index", "--no-deps", self.path("python")], env=self.env,
            cwd=self.folder.name, capture_output=True, text=True)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def run_tool(self, *command):
        done = subprocess.run(command, env=self.env, cwd=self.folder.name,
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def installs_and_trains(self):
        self.run_tool(sys.executable, "-m", "venv", "--system-site-packages",
                      self.path("venv"))
        python = self.path("venv/bin/python3")
        self.run_tool(python, "-m", "pip", "install", "--no-build-isolation",
                      "--no-index", "--no-deps", self.path("python"))
        with LocalJob(sets=["train_steps=3"]) as job:
            with open(job.path("program.py"), "w") as f:
                f.write(PROGRAM)
            job.start("worker", 0, [python, job.path("program.py")],
                      PYTHONPATH="")
            self.assertEqual(job.wait("worker"), 0, job.log("worker"))
            self.assertIn("from " + self.path("venv"), job.log("worker"))


class PackageTest(PackageCase):

    def test_pip_installs_it_and_it_trains(self):
        self.installs_and_trains()

    def test_the_wheel_has_all_of_the_package(self):
        self.run_tool(sys.executable, "-m", "pip", "wheel",
                      "--no-build-isolation", "--no-index", "--no-deps", "-w",
                      self.path("wheels"), self.path("python"))
        wheels = glob.glob(self.path("wheels/lockstep-*.whl"))
        self.assertEqual(len(wheels), 1)
        with zipfile.ZipFile(wheels[0]) as wheel:
            names = {name for name in wheel.namelist()
                     if name.startswith("lockstep/")}
        wanted = {"lockstep/" + name
                  for name in os.listdir(os.path.join(SOURCE, "lockstep"))
                  if name.endswith((".py", ".pyi", ".typed"))}
        self.assertLessEqual(wanted, names)
        self.assertEqual(len([name for name in names - wanted
                              if name.startswith("lockstep/_native.")]), 1)

    def test_the_debian_package_has_no_fault_and_trains(self):
        tools = ("dpkg-deb", "dpkg-shlibdeps", "help2man", "file", "lintian")
        missing = [tool for tool in tools if shutil.which(tool) is None]
        if missing:
            print("SKIPPED, NOTHING WAS PROVED: the Debian package:", *missing,
                  "missing")
            self.skipTest("tools are missing")
        path = self.run_tool(
            os.path.join(SOURCE, "..", "deploy", "package",
                         "make_python_deb.sh"),
            os.path.join(os.path.dirname(BIN), "python"), "0.1.0",
            sys.executable, self.folder.name).strip()
        self.assertEqual(
            self.run_tool("lintian", "--allow-root", "--fail-on",
                          "error,warning", path), "")
        self.run_tool("dpkg-deb", "--extract", path, self.path("root"))
        there = self.path("root/usr/lib/python3/dist-packages")
        with LocalJob(sets=["train_steps=3"]) as job:
            job.start_worker(0, PROGRAM, PYTHONPATH=there)
            self.assertEqual(job.wait("worker"), 0, job.log("worker"))
            self.assertIn("from " + there, job.log("worker"))

    def test_an_interpreter_without_its_native_module_is_told_the_fix(self):
        folder = self.path("python/lockstep")
        for path in glob.glob(os.path.join(folder, "_native*.so")):
            os.remove(path)
        here = "this is Python {}.{}".format(*sys.version_info)
        fix = "run `pip install ./python` with this interpreter"
        other = os.path.join(folder, "_native.cpython-27-x86_64-linux-gnu.so")
        for file, says in ((None, f"is not built in {folder}: {fix}"),
                           (other, f"is built for Python 2.7 ({other}); {here}"
                                   f": {fix}")):
            if file:
                open(file, "w").close()
            done = subprocess.run(
                [sys.executable, "-c", "import lockstep"],
                env=dict(self.env, PYTHONPATH=self.path("python")),
                cwd=self.folder.name, capture_output=True, text=True)
            self.assertEqual(done.returncode, 1)
            self.assertIn("ImportError: lockstep's native module " + says,
                          done.stderr)
            self.assertIn(here, done.stderr)

    def test_a_build_directory_without_the_module_is_refused_with_the_fix(self):
        self.env["LOCKSTEP_BUILD_DIR"] = "wheels"
        done = self.pip_wheel()
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(self.path("wheels/python/lockstep/_native"),
                      done.stdout + done.stderr)
        self.assertIn("build the target lockstep_python", done.stdout
                      + done.stderr)

    def test_sources_without_their_tree_are_refused_with_the_fix(self):
        del self.env["LOCKSTEP_BUILD_DIR"]
        done = self.pip_wheel()
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(self.folder.name + " is not the tree of Lockstep",
                      done.stdout + done.stderr)
        self.assertIn("LOCKSTEP_BUILD_DIR", done.stdout + done.stderr)


def main():
    if missing_tools():
        print("SKIPPED, NOTHING WAS PROVED: this interpreter has no venv, pip, "
              "setuptools or wheel (Debian: python3-venv, python3-pip, python3-setuptools, "
              "python3-wheel)")
        sys.exit(77)
    unittest.main(verbosity=2)


if __name__ == "__main__":
    main()
