"""Tables of a PyTorch model."""

import weakref

import numpy as np
import torch
import torch.nn.functional as F

from . import _session, _tables


class Embedding(_tables.Described, torch.nn.Module):
    """A table on the servers, of which a step has only the rows that it uses.

    ``forward(ids)`` takes an int64 tensor of any shape and returns a float32
    tensor of that shape and ``dim``: it fetches the rows that the step lacks.
    ``step.prefetch(ids)`` lets the rows of the next step arrive with its values.
    Gradients are sent for the rows that forward looked up in this step while
    the module was in training mode; their sum is divided by the number of
    workers that did so, row by row. Once ``step.backward`` or
    ``step.push`` has handed the gradients in, forward raises RuntimeError until
    the next step. Outside of a loop over steps it has the rows of the checkpoint
    that ``lockstep.torch.load`` has read; the next step drops them.

    Args:
      rows: number of rows; or
      row_limit: largest number of rows. A row then has a key, any number from 0
        on, and is created when it is first looked up.
      dim: elements of a row.
      std: standard deviation of the initial values, which servers draw.

    Raises:
      TypeError: sizes that are no integers.
      ValueError: sizes that are not possible.
    """

    def __init__(self, rows=None, dim=None, row_limit=None, std=1.0):
        super().__init__()
        self._describe_as("an Embedding", rows, row_limit, [dim or 0], 0.0, std)
        (self.dim,) = self.width
        self._worker = None
        self._table = None  # of _base, while a worker lives
        self._used = []  # (ascending ids, leaf) of this step
        self._loaded = None  # (ascending keys or None, rows)

    def __getstate__(self):
        # Copies and pickles are of no worker.
        return dict(self.__dict__, _worker=None, _table=None, _used=[])

    def extra_repr(self):
        return (f"{'row_limit' if self.grows else 'rows'}={self.rows}, "
                f"dim={self.dim}")

    def _join(self, worker, variable, name):
        self._worker = weakref.ref(worker)
        self._table = self._rows_at_hand(variable, name)
        return self._table

    def _step_at_hand(self):
        worker = self._worker() if self._worker is not None else None
        # A program may leave its loop in the midst of a step.
        if worker is None or worker._loop.closed:
            return None
        if worker._computes:
            return worker
        step = worker._at_hand
        # What was loaded in the step goes with parameters that were, too.
        if step is not None and step._over and self._loaded is None:
            raise RuntimeError(
                "this Embedding has no rows any more: they have left with the "
                f"gradients of step {step.number}; evaluate the model before "
                "step.backward() or step.push()")
        return None

    def _check(self, ids):
        if not isinstance(ids, torch.Tensor):
            raise TypeError(f"the ids are of the type {type(ids).__name__}; give "
                            "an int64 tensor, as of torch.tensor(ids)")
        if ids.is_floating_point() or ids.dtype == torch.bool:
            raise ValueError(f"the ids are of {ids.dtype}; they must be int64")
        return ids.detach().to("cpu", torch.int64).numpy()

    def forward(self, ids):
        flat = self._check(ids).reshape(-1)
        unique, inverse = np.unique(flat, return_inverse=True)
        worker = self._step_at_hand()
        values = (self._find_loaded(unique) if worker is None
                  else self._find(worker, unique))
        leaf = torch.from_numpy(np.ascontiguousarray(values)).to(ids.device)
        if worker is not None and self.training:
            # A leaf of the looked-up rows alone: its gradient is as small.
            leaf.requires_grad_(torch.is_grad_enabled())
            self._used.append((unique, leaf))
        inverse = torch.from_numpy(inverse.reshape(-1)).to(ids.device)
        return F.embedding(inverse.view(ids.shape), leaf)

    def _find(self, worker, unique):
        self._table.check(unique)
        try:
            with worker._hooks.alone:
                return self._table.lookup(worker._loop.native, unique)
        except _session.Unwanted:
            # The rest of the body is in vain, and ends quietly.
            return np.zeros((len(unique), self.dim), np.float32)

    def _find_loaded(self, unique):
        if self._loaded is None:
            raise RuntimeError(
                "this Embedding has rows only in a step of a worker, or after "
                "lockstep.torch.load")
        keys, rows = self._loaded
        if keys is None:
            if len(unique) and not 0 <= unique[0] <= unique[-1] < len(rows):
                wrong = unique[0] if unique[0] < 0 else unique[-1]
                raise ValueError(f"there is no row {wrong}; rows are 0 to "
                                 f"{len(rows) - 1}")
            return rows[unique]
        # A key that training has not seen has no row, and counts as zeros.
        found = np.zeros((len(unique), self.dim), np.float32)
        if len(keys):
            at = np.minimum(np.searchsorted(keys, unique), len(keys) - 1)
            there = keys[at] == unique
            found[there] = rows[at[there]]
        return found

    def _check_shape(self, tensors, name):
        shape = tensors[name][1]
        if len(shape) != 2 or shape[1] != self.dim or (
                not self.grows and shape[0] != self.rows):
            raise ValueError(
                f'the checkpoint has "{name}" with shape {tuple(shape)}; the '
                f"model has {(self.rows, self.dim)}")

    def _load(self, tensors, name, array):
        rows = array(*tensors[name])
        if name + "/keys" not in tensors:
            self._loaded = (None, rows)
            return
        keys = array(*tensors[name + "/keys"])
        # Ascending, as _find_loaded searches them.
        order = np.argsort(keys)
        self._loaded = (keys[order], rows[order])

    def _begin(self):
        self._forget_used()
        # The parameters have other values now than those that were loaded.
        self._loaded = None

    def _forget_used(self):
        self._used = []

    def _has_gradients(self):
        return any(leaf.grad is not None for _, leaf in self._used)

    def _clear_gradients(self):
        for _, leaf in self._used:
            leaf.grad = None

    def _touched(self):
        ids = [ids for ids, _ in self._used]
        return np.unique(np.concatenate(ids)) if ids else np.empty(0, np.int64)

    def _hand_in(self, native):
        for ids, leaf in self._used:
            if leaf.grad is not None:
                self._table.add(ids, leaf.grad.detach().to("cpu").numpy())
        self._table.hand_in(native)
