"""Builds a stranger's program against one installed component."""

import os
import re
import subprocess

from local_job import BIN

HERE = os.path.dirname(os.path.abspath(__file__))


def run(*command):
    """Returns what a command has printed; raises with its output if it fails."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(done.stdout + done.stderr)
    return done.stdout


def headers_that_need_others(prefix, folder):
    """Returns the installed headers that need other headers of ours to be
    included before them. Those of other libraries, which take all of the
    compiler's time, are compiled once, for all."""
    include = os.path.join(prefix, "include/lockstep")
    headers = sorted(os.path.join(where, file)
                     for where, _, files in os.walk(include) for file in files)
    foreign = set()
    for header in headers:
        with open(header) as file:
            foreign.update(re.findall('^#include (<.*>|"absl/.*")',
                                      file.read(), re.MULTILINE))
    others = os.path.join(folder, "others.h")
    with open(others, "w") as file:
        file.writelines(f"#include {each}\n" for each in sorted(foreign))
    compiler = [os.environ.get("CXX", "c++"), "-std=c++20", "-Wall", "-Wextra",
                "-Wpedantic", "-Wshadow", "-Werror", "-I", include]
    run(*compiler, "-x", "c++-header", others, "-o", others + ".gch")
    return [os.path.relpath(header, include) for header in headers
            if subprocess.run(
                [*compiler, "-fsyntax-only", "-include", others, "-include",
                 header, "-x", "c++", os.devnull],
                capture_output=True).returncode != 0]


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
