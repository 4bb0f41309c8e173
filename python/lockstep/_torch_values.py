"""The values of a step, on their way into the parameters of a model."""

import functools
import sys
import warnings

import torch
import torch.utils.dlpack
from torch.multiprocessing.reductions import StorageWeakRef

# Bytes from which a copy takes longer than to move a parameter, about 30 us.
LARGE = 256 << 10


def view(memory, like):
    """The native module's memory as a tensor of the dtype and shape of ``like``."""
    flat = torch.utils.dlpack.from_dlpack(memory.dlpack())
    return flat.view(like.dtype).view(like.shape)


def as_dtype(values, dtype):
    """Values of the job, where a tensor of integers has floating-point ones."""
    return values if dtype.is_floating_point else values.round().to(dtype)


def place(model, name):
    """The module that has a parameter or buffer, and the key of it there."""
    *path, key = name.split(".")
    # A module of torch.jit.script has no get_submodule().
    return functools.reduce(getattr, path, model), key


def current(tensors, key, otherwise):
    """What a module has as ``key`` among its parameters or buffers."""
    # Those of torch.jit.script have no get().
    return tensors[key] if key in tensors else otherwise


class Values:
    """Gives the parameters of a model the values of each step.

    A large parameter moves: its ``data`` becomes a tensor on the memory that the
    values have arrived in, and the session lets the next ones arrive elsewhere.
    Values are copied into all other parameters, also into one whose memory has
    a second owner, such as a view, an array or another process: that expects
    to see the values of each step in the same memory.

    Attributes:
      like: tensors of the parameters' shapes and dtypes when they joined.
      missing: numbers of parameters that lack the values of an early step.
      late: those that still lacked them when gradients began.

    Args:
      parameters: the tensors.
      first: the number of the first one among the session's variables.
    """

    def __init__(self, parameters, first):
        self._parameters = parameters
        self._first = first
        self.like = [torch.empty(p.shape, dtype=p.dtype, device="meta")
                     for p in parameters]
        self._versions = {}  # of the parameters that have the step's values
        self._turns = [i for i, (p, like) in enumerate(
            zip(parameters, self.like)) if p.device.type == "cpu"
                       and 0 < _size(like) < LARGE]
        self._suspects = []  # that the step before has written to
        self._kept = {}  # by number: the step's values of some parameters
        self._first_step = True
        self._told = False  # of a write that is lost
        self.missing = set()
        self.late = set()

    def adopt(self, native, moves):
        """The session's values are in other memory, because it joined again.

        Args:
          moves: false: copy all values. For jobs that read the same values
            twice: what has moved away must be pulled again.
        """
        self._moves = moves
        # A tensor kept here would be a second owner of memory that moves.
        self._small = {
            i: view(native.value(self._first + i), like)
            for i, like in enumerate(self.like)
            if not moves or _size(like) < LARGE}

    def begin(self, native, again=False, early=False):
        """A step begins: the parameters get its values, and no gradients.

        Args:
          again: it began before, perhaps not to the end.
          early: its values are still to arrive: arrive() must follow.
        """
        self.late = set()
        self.missing = set(range(len(self._parameters))) if early else set()
        self._choose_kept()
        if early:
            self._versions.clear()
            for p in self._parameters:
                p.grad = None
            return
        with torch.no_grad():
            for i, p in enumerate(self._parameters):
                p.grad = None
                value = self._small.get(i)
                if again and native.is_taken(self._first + i):
                    continue  # it has moved, with the values of the step
                if value is not None:
                    p.copy_(value)
                elif not self._may_move(i) or not self._move(native, i):
                    p.copy_(view(native.value(self._first + i), self.like[i]))
                self._note(i)

    def take_last(self, native, again):
        """The job is done: copies the values with which it has ended.

        Args:
          again: they are those of the step at hand.

        Returns: false if the program has changed values that had moved.
        """
        self.missing = set()
        whole = True
        with torch.no_grad():
            for i, p in enumerate(self._parameters):
                if again and native.is_taken(self._first + i):
                    # It has moved, with the values of the step.
                    whole = whole and p._version == self._versions[i]
                    continue
                p.copy_(view(native.value(self._first + i), self.like[i]))
        return whole

    def arrive(self, native, i):
        """The values of an early step are there: copies those of parameter ``i``."""
        with torch.no_grad():
            self._parameters[i].copy_(
                view(native.value(self._first + i), self.like[i]))
        self._note(i)
        self.missing.discard(i)

    def arrive_late(self, native):
        """Copies all that is missing, before gradients are handed in."""
        for i in sorted(self.missing):
            self.late.add(i)
            self.arrive(native, i)

    def _may_move(self, i):
        p, like = self._parameters[i], self.like[i]
        return (type(p) is torch.nn.Parameter and p.device.type == "cpu"
                and p.layout is torch.strided and p.dtype == like.dtype
                and p.shape == like.shape and p.is_contiguous()
                and not p.is_shared())

    def _move(self, native, i):
        """Returns false where the memory of the parameter has a second owner."""
        p = self._parameters[i]
        before = StorageWeakRef(storage_of(p))
        place = p.storage_offset(), p.shape, p.stride()
        p.data = view(native.value(self._first + i), self.like[i])
        storage = type(storage_of(p))._new_with_weak_ptr(before.cdata)
        if storage is not None:
            p.data = torch.empty(0, dtype=p.dtype, device="cpu").set_(
                storage, *place)
            return False
        native.take_value(self._first + i)
        # Tells autograd, as a copy does, that a graph which has saved the
        # parameter cannot be used any more.
        p.narrow(0, 0, 0).zero_()
        return True

    def _choose_kept(self):
        """Names those whose values are kept: one in each step, after all of
        the first one, in turn, and one that the step before has written to."""
        self._kept = {}
        if self._told:
            return
        chosen = self._turns[:len(self._turns) if self._first_step else 1]
        self._first_step = False
        self._turns = self._turns[len(chosen):] + chosen
        self._kept = dict.fromkeys(chosen + self._suspects[:1])

    def _note(self, i):
        """Parameter ``i`` has the values of the step."""
        p = self._parameters[i]
        self._versions[i] = p._version
        if i in self._kept:
            self._kept[i] = p.detach().clone()

    def warn_of_writes(self, names):
        """Warns, once, if the program has changed a parameter in a step.

        The values of the next step replace what it has written. A program may
        put the step's values back, as after the evaluation of an average, so
        they are compared: in each step one of those whose writes PyTorch has
        counted in the step before. It counts none through ``parameter.data``:
        small parameters are compared in turn, and all of them in the first step.

        Args:
          names: of the parameters.
        """
        if self._told:
            return
        written = [i for i, values in self._kept.items() if values is not None
                   and not _same_bytes(self._parameters[i].detach(), values)]
        if not written:
            counted = [i for i, version in self._versions.items()
                       if self._parameters[i]._version != version]
            # In turn, beginning after the one that was compared.
            last = self._suspects[0] if self._suspects else -1
            self._suspects = ([i for i in counted if i > last]
                              + [i for i in counted if i <= last])
            return
        self._told = True
        self._kept = {}
        warnings.warn(
            f'the program has written to parameter "{names[written[0]]}" after '
            "its Worker was made, and the job loses what it wrote: each step "
            "begins with the values that the servers compute from gradients "
            "alone; leave out optimizer.step(), limits of the weights and "
            "Embedding(max_norm=), and load or initialize values before the "
            "Worker is made",
            RuntimeWarning, stacklevel=level_of_program())


def level_of_program():
    """The ``stacklevel``, for the caller, of the program's line."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and (
            frame.f_globals.get("__name__", "").partition(".")[0] == "lockstep"):
        level, frame = level + 1, frame.f_back
    return level


def _size(tensor):
    return tensor.numel() * tensor.element_size()


def _same_bytes(one, other):
    # A NaN does not equal itself.
    return (one.dtype == other.dtype and one.shape == other.shape
            and one.device == other.device
            and torch.equal(one.contiguous().view(-1).view(torch.uint8),
                            other.contiguous().view(-1).view(torch.uint8)))


def storage_of(tensor):
    """The memory that a tensor and its views are on."""
    # PyTorch 1 has no untyped_storage().
    whole = getattr(tensor, "untyped_storage", None)
    return whole() if whole else tensor.storage()._storage
