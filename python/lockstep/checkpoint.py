"""Reads checkpoints, which are safetensors files."""

import json
import os
import struct

import numpy as np


def steps(directory):
    """Returns the steps of the complete checkpoints, ascending."""
    found = []
    for entry in os.listdir(directory):
        head, _, number = entry.partition("-")
        path = os.path.join(directory, entry, "manifest.json")
        if head == "step" and number.isdigit() and os.path.exists(path):
            found.append(int(number))
    return sorted(found)


def read(directory, step=None):
    """Returns (step, dict from name to (type, shape, bytes as uint8 array)).

    Types are those of safetensors: "F32", "BF16", ...

    Raises:
      FileNotFoundError: there is no such checkpoint; names those there are.
      ValueError: the file is damaged.
    """
    there = steps(directory)
    if step is None and there:
        step = there[-1]
    if step not in there:
        raise FileNotFoundError(
            f"{directory} has no checkpoint of step {step}; it has "
            f"{', '.join(map(str, there)) or 'none'}")
    path = os.path.join(directory, f"step-{step:08d}", "model.safetensors")
    data = np.memmap(path, dtype=np.uint8, mode="r")
    try:
        (length,) = struct.unpack("<Q", data[:8].tobytes())
        header = json.loads(data[8:8 + length].tobytes())
        tensors = {}
        for name, entry in header.items():
            if name == "__metadata__":
                continue
            begin, end = entry["data_offsets"]
            tensors[name] = (entry["dtype"], entry["shape"],
                             data[8 + length + begin:8 + length + end])
    except (struct.error, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    return step, tensors
