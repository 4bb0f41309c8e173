"""Modules without which a test program proves nothing."""

import importlib
import sys

# Debian's packages of them.
PACKAGES = {"torch": "python3-torch", "mypy": "mypy"}


def need(name):
    """Returns a module; where there is none, the program ends as skipped."""
    try:
        return importlib.import_module(name)
    except ImportError:
        print(f"SKIPPED, NOTHING WAS PROVED: this interpreter has no {name} "
              f"(Debian: {PACKAGES[name]})")
        sys.exit(77)
