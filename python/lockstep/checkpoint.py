"""Reads checkpoints, which are safetensors files."""

import contextlib
import errno
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

_BLOCK = 1 << 20  # bytes that are hashed at a time


class Damaged(ValueError):
    """The files of a checkpoint are not those that were written."""


@contextlib.contextmanager
def _removed_if_stale():
    """FileNotFoundError: a network's file system has lost an open file.

    The chief, on another host, has removed it.
    """
    try:
        yield
    except OSError as error:
        if error.errno != errno.ESTALE:
            raise
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT),
                                error.filename) from error


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
    with _removed_if_stale():
        entries = os.listdir(directory)
    return sorted(
        _step_of(entry) for entry in entries
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


def _manifest(folder, part):
    """Returns what ``part`` takes from the manifest, a dict.

    Raises: Damaged, with the manifest's path.
    """
    path = os.path.join(folder, "manifest.json")
    with _removed_if_stale(), open(path, "rb") as file:
        data = file.read()
    try:
        return part(json.loads(data))
    except KeyError as error:
        raise Damaged(f"{path} is damaged: it has no {error}; use another "
                      "checkpoint") from error
    except (ValueError, TypeError) as error:
        raise Damaged(f"{path} is damaged: {error}; use another "
                      "checkpoint") from error


def saved_at(directory, step):
    """Returns when a checkpoint was written, in milliseconds since 1970.

    Raises:
      FileNotFoundError: there is no such checkpoint.
      Damaged: its manifest is.
    """
    return _manifest(os.path.join(directory, _folder(step)),
                     lambda manifest: operator.index(
                         manifest["saved_at_unix_ms"]))


def _check(folder, name, file):
    """ValueError: the bytes of a file are not those that were written."""
    want = _manifest(folder, lambda manifest: {
        entry["name"]: entry["sha256"] for entry in manifest["files"]}[name])
    digest = hashlib.sha256()
    file.seek(0)
    for block in iter(lambda: file.read(_BLOCK), b""):
        digest.update(block)
    if digest.hexdigest() != want:
        raise ValueError(f"sha256 is {digest.hexdigest()}, the manifest says "
                         f"{want}; use another checkpoint")


def _bytes_of(file, first, begin, end, what):
    """Returns the bytes from ``first + begin`` to ``first + end``, read-only.

    They are in memory of their own. A map of a file that the chief may remove
    would end the interpreter where a network's file system has lost the file.
    """
    # Before memory is taken: the numbers may be damaged.
    if not 0 <= begin <= end <= os.fstat(file.fileno()).st_size - first:
        raise ValueError(f"{what} ends behind the end of the file")
    memory = np.empty(end - begin, np.uint8)
    file.seek(first + begin)
    if file.readinto(memory) != len(memory):
        raise ValueError(f"{what} ends behind the end of the file")
    memory.setflags(write=False)
    return memory


def _header(file):
    """Returns the header of a safetensors file, and where its tensors begin."""
    # The length of the header, the header in JSON, the bytes of the tensors.
    (length,) = struct.unpack(
        "<Q", _bytes_of(file, 0, 0, 8, "the length of the header"))
    header = json.loads(_bytes_of(file, 8, 0, length, "the header").tobytes())
    return header, 8 + length


def _read_file(folder, name, ending=""):
    """Returns a dict of the tensors whose names have an ending.

    Raises: Damaged.
    """
    path = os.path.join(folder, name)
    with _removed_if_stale(), open(path, "rb") as file:
        try:
            # Changed bytes are values, too, if nothing but their hash is wrong.
            if not ending:
                _check(folder, name, file)
            header, first = _header(file)
            entries = {key: entry for key, entry in header.items()
                       if key != "__metadata__" and key.endswith(ending)}
            # A file of which nothing is used may be large.
            if ending and entries:
                _check(folder, name, file)
            return {
                key: (entry["dtype"], entry["shape"],
                      _bytes_of(file, first, *entry["data_offsets"], f'"{key}"'))
                for key, entry in entries.items()}
        except Damaged:
            raise  # of the manifest
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise Damaged(f"{path} is damaged: {error}") from error


def read(directory, step=None, averaged=False):
    """Returns (step, dict from name to (type, shape, bytes as uint8 array)).

    Types are those of safetensors: "F32", "BF16", ... The arrays are read-only,
    and stay when the checkpoint is removed; all of them are in memory.

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
