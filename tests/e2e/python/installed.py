"""Builds a stranger's program against one installed component."""

import os
import subprocess

from local_job import BIN

HERE = os.path.dirname(os.path.abspath(__file__))


def run(*command):
    """Returns what a command has printed; raises with its output if it fails."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(done.stdout + done.stderr)
    return done.stdout


def build(component, folder, needs=()):
    """Installs the component and those that it needs, and builds
    ../installed_COMPONENT; returns where."""
    prefix = os.path.join(folder, "prefix")
    built = os.path.join(folder, "build")
    for each in (component, *needs):
        run("cmake", "--install", os.path.dirname(BIN), "--component", each,
            "--prefix", prefix)
    run("cmake", "-S", os.path.join(HERE, "..", "installed_" + component),
        "-B", built, "-DCMAKE_PREFIX_PATH=" + prefix)
    run("cmake", "--build", built)
    return built
