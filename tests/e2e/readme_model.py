#!/usr/bin/env python3
"""Writes the model of a page's section "Adding a model", following its text.

readme_model.py PAGE REGISTRY OUT: each block of C++ belongs to the file of
worker/models/zoo that the text before it names last. New files are written below
OUT; the lines for registry.cc go into a copy of REGISTRY, includes to the
others and the rest to the end of kModels.
"""

import pathlib
import re
import sys


def blocks(readme):
    """Pairs of a path and the lines of its block."""
    section = re.search(r"^## Adding a model$(.*?)(?=^## |\Z)", readme, re.M | re.S)
    if section is None:
        sys.exit("the page has no section \"Adding a model\"")
    parts = re.split(r"^```(\w*)\n", section[1], flags=re.M)
    path = None
    # Text, language, block, "", text and so on.
    for i in range(0, len(parts) - 2, 4):
        named = re.findall(r"`(worker/models/zoo/\w+\.(?:h|cc))`", parts[i])
        path = named[-1] if named else path
        if parts[i + 1] != "cpp" or path is None:
            sys.exit(f"the page: a block of {parts[i + 1]} for {path}")
        yield path, parts[i + 2]


def main():
    readme, registry, out = map(pathlib.Path, sys.argv[1:])
    registered = registry.read_text()
    for path, block in blocks(readme.read_text()):
        target = out / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if not path.endswith("/registry.cc"):
            target.write_text(block)
            continue
        for line in block.splitlines(keepends=True):
            mark = ("#include \"worker/models/zoo/cnn.h\"\n"
                    if line.startswith("#include") else
                    "};\n\nabsl::Status UnknownKind")
            if registered.count(mark) != 1:
                sys.exit(f"{registry} has no single place for {line}")
            registered = registered.replace(mark, line + mark)
        target.write_text(registered)


main()
