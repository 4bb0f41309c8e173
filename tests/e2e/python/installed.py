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


def headers_that_need_others(prefix):
    """Returns the installed headers that do not compile alone."""
    include = os.path.join(prefix, "include/lockstep")
    compiler = os.environ.get("CXX", "c++")
    failed = []
    for folder, _, files in os.walk(include):
        for header in files:
            path = os.path.join(folder, header)
            done = subprocess.run(
                [compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra",
                 "-Wpedantic", "-Wshadow", "-Werror", "-I", include, "-include",
                 path, "-x", "c++", os.devnull], capture_output=True)
            if done.returncode != 0:
                failed.append(os.path.relpath(path, include))
    return failed


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
