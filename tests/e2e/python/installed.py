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


# Names of other libraries, and the header that a header of ours must have for
# each of them: by itself, or by another one of ours.
_DECLARED_IN = {
    "std::string": "<string>", "std::vector": "<vector>",
    "std::map": "<map>", "std::set": "<set>", "std::array": "<array>",
    "std::optional": "<optional>", "std::nullopt": "<optional>",
    "std::variant": "<variant>", "std::function": "<functional>",
    "std::unique_ptr": "<memory>", "std::shared_ptr": "<memory>",
    "std::move": "<utility>", "std::pair": "<utility>",
    "std::thread": "<thread>", "std::atomic": "<atomic>",
    "int64_t": "<cstdint>", "uint64_t": "<cstdint>", "size_t": "<cstddef>",
    "absl::Status": '"absl/status/status.h"',
    "absl::StatusOr": '"absl/status/statusor.h"',
    "absl::Span": '"absl/types/span.h"',
    "absl::string_view": '"absl/strings/string_view.h"',
    "absl::StrCat": '"absl/strings/str_cat.h"',
    "absl::Duration": '"absl/time/time.h"', "absl::Time": '"absl/time/time.h"',
    "absl::FunctionRef": '"absl/functional/function_ref.h"',
}


def includes_that_lack(prefix):
    """Returns "header: name needs other" for installed headers that use a name
    of another library without its header."""
    include = os.path.join(prefix, "include/lockstep")
    texts, had = {}, {}

    def text(header):
        if header not in texts:
            with open(os.path.join(include, header)) as file:
                texts[header] = re.sub("//.*", "", file.read())
        return texts[header]

    def has(header):
        if header not in had:
            had[header] = set()
            for other in re.findall('^#include (<.*>|".*")', text(header),
                                    re.MULTILINE):
                had[header].add(other)
                if os.path.exists(os.path.join(include, other.strip('"'))):
                    had[header] |= has(other.strip('"'))
        return had[header]

    return sorted(
        f"{header}: {name} needs {other}"
        for header in (os.path.relpath(os.path.join(where, file), include)
                       for where, _, files in os.walk(include)
                       for file in files)
        for name, other in _DECLARED_IN.items()
        if re.search(rf"(?<![\w:]){name}\b", text(header)) and
        other not in has(header))


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
