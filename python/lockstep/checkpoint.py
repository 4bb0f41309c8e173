"""Reads checkpoints, which are safetensors files."""

import hashlib
import json
import operator
import os
import struct

import numpy as np

# numpy has no bfloat16: its bits are read as uint16.
_DTYPES = {"F16": np.float16, "F32": np.float32, "F64": np.float64,
           "I64": np.int64, "BF16": np.uint16}

# What a checkpoint's file of the optimizer has behind the name of a variable.
_AVERAGE = "/ExponentialMovingAverage"


class Damaged(ValueError):
    """The files of a checkpoint are not those that were written."""


def _folder(step):
    return f"step-{step:08d}"


def _step_of(folder):
    """Returns the step of a checkpoint's folder; None if it is of none."""
    head, _, number = folder.partition("-")
    if head != "step" or not number.isdecimal():
        return None
    # Other spellings, such as "step-5", are no names of checkpoints.
    return int(number) if folder == _folder(int(number)) else None


def steps(directory):
    """Returns the steps of the complete checkpoints, ascending.

    Raises: FileNotFoundError: there is no such directory.
    """
    return sorted(
        _step_of(entry) for entry in os.listdir(directory)
        if _step_of(entry) is not None and
        os.path.exists(os.path.join(directory, entry, "manifest.json")))


def array(kind, shape, memory):
    """Returns a tensor of ``read`` as numpy array; bfloat16 as float32.

    Raises: ValueError: a type that this package does not read.
    """
    if kind not in _DTYPES:
        raise ValueError(f"a tensor is of {kind}; this package reads "
                         f"{', '.join(_DTYPES)}")
    flat = np.frombuffer(memory, dtype=_DTYPES[kind])
    if kind == "BF16":
        # A bfloat16 is the upper half of a float32.
        flat = (flat.astype(np.uint32) << 16).view(np.float32)
    return flat.reshape(shape)


def _manifest(folder):
    with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as f:
        return json.load(f)


def saved_at(directory, step):
    """Returns when a checkpoint was written, in milliseconds since 1970.

    Raises: FileNotFoundError: there is no such checkpoint.
    """
    return _manifest(os.path.join(directory, _folder(step)))["saved_at_unix_ms"]


def _check(folder, name, data):
    """ValueError: the bytes of a file are not those that were written."""
    files = {entry["name"]: entry for entry in _manifest(folder)["files"]}
    found, want = hashlib.sha256(data).hexdigest(), files[name]["sha256"]
    if found != want:
        raise ValueError(f"sha256 is {found}, the manifest says {want}; use "
                         "another checkpoint")


def _read_file(folder, name, ending=""):
    """Returns a dict of the tensors whose names have an ending.

    Raises: Damaged.
    """
    path = os.path.join(folder, name)
    try:
        data = np.memmap(path, dtype=np.uint8, mode="r")
        # Changed bytes are values, too, if nothing but their hash is wrong.
        if not ending:
            _check(folder, name, data)
        # The length of the header, the header in JSON, the bytes of the
        # tensors.
        (length,) = struct.unpack("<Q", data[:8].tobytes())
        header = json.loads(data[8:8 + length].tobytes())
        tensors = {}
        for key, entry in header.items():
            if key == "__metadata__" or not key.endswith(ending):
                continue
            begin, end = entry["data_offsets"]
            memory = data[8 + length + begin:8 + length + end]
            if len(memory) != end - begin:
                raise ValueError(f'"{key}" ends behind the end of the file')
            tensors[key] = (entry["dtype"], entry["shape"], memory)
        # A file of which nothing is used may be large.
        if ending and tensors:
            _check(folder, name, data)
    except (struct.error, ValueError, KeyError, TypeError,
            AttributeError) as error:
        raise Damaged(f"{path} is damaged: {error}") from error
    return tensors


def read(directory, step=None, averaged=False):
    """Returns (step, dict from name to (type, shape, bytes as uint8 array)).

    Types are those of safetensors: "F32", "BF16", ...

    Args:
      averaged: of variables of which the job keeps moving averages
        (``moving_average``), return these in place of the values. None: if
        there are any.

    Raises:
      FileNotFoundError: there is no such checkpoint; names those there are.
      TypeError: ``step`` is no integer, such as a word of a command line.
      Damaged: a ValueError, with the file.
      ValueError: ``averaged`` is true, and there is no average.
    """
    if step is not None:
        try:
            step = operator.index(step)
        except TypeError:
            raise TypeError(f"step is {step!r}; give an integer, or None for "
                            "the newest checkpoint") from None
    try:
        there = steps(directory)
    except (FileNotFoundError, NotADirectoryError):
        there = []  # of a file of a checkpoint, or a mistaken name, say the fix
    if step is None and there:
        step = there[-1]
    if not there:
        raise FileNotFoundError(
            f"{directory} has no checkpoint; give the checkpoint.directory of "
            "a job, in which each step has a folder")
    if step not in there:
        raise FileNotFoundError(
            f"{directory} has no checkpoint of step {step}; it has "
            f"{', '.join(map(str, there))}")
    folder = os.path.join(directory, _folder(step))
    tensors = _read_file(folder, "model.safetensors")
    if averaged or averaged is None:
        averages = _read_file(folder, "optimizer.safetensors", _AVERAGE)
        if averaged and not averages:
            raise ValueError(
                f"the checkpoint of step {step} in {directory} has no moving "
                "averages: leave averaged=True out, or set moving_average.decay "
                "in the job")
        tensors.update((key[:-len(_AVERAGE)], average)
                       for key, average in averages.items())
    return step, tensors
