"""Buffers of a PyTorch model that are the same for all workers of a step."""

import warnings

import torch

from ._torch_describe import sent_dtype
from ._torch_values import (as_dtype, current, level_of_program, place, view)


class Buffers:
    """Sends what the passes change in buffers, and sets the mean of it.

    A module may replace a buffer, as ``self.mean = 0.9 * self.mean`` does: its
    key in the module counts, not the tensor.

    Attributes:
      missing: true while the buffers lack the values of an early step.

    Args:
      model: has them.
      named: their names and tensors.
      first: the number of the first one among the session's variables.
      tells: warn of a complex buffer that a pass has changed.
    """

    def __init__(self, model, named, first, tells):
        self._first = first
        self._complex = _ComplexBuffers(model) if tells else None
        self._names = [name for name, _ in named]
        self._places = [place(model, name) for name in self._names]
        self._tensors = [tensor for _, tensor in named]
        self._like = [torch.empty(each.shape, dtype=each.dtype, device="meta")
                      for each in self._tensors]
        self._sent = [each.to(sent_dtype(each.dtype)) for each in self._like]
        self.missing = False

    def __len__(self):
        return len(self._names)

    def adopt(self, native):
        """The session's values are in other memory, because it joined again."""
        self._values = [view(native.value(self._first + i), like)
                        for i, like in enumerate(self._sent)]
        self._changes = [view(native.gradient(self._first + i), like)
                         for i, like in enumerate(self._sent)]

    def begin(self, early=False):
        """A step begins: the buffers get its values.

        Args:
          early: they are still to arrive: arrive() must follow.

        Raises: RuntimeError: a buffer is of another shape or dtype than when
          the Worker was made.
        """
        self.missing = early and len(self._names) > 0
        if early:
            self._before = [(each, _version(each)) for each in map(
                self._current, range(len(self._names)))]
        else:
            self.arrive()

    def arrive(self):
        """The values of the step are there.

        Raises: as begin().
        """
        with torch.no_grad():
            for i, value in enumerate(self._values):
                buffer = self._current(i)
                if buffer is not self._tensors[i]:
                    # It may share memory with whatever the module made it of.
                    buffer = self._tensors[i] = torch.empty_like(buffer)
                    module, key = self._places[i]
                    if key in module._buffers:
                        module._buffers[key] = buffer
                buffer.copy_(as_dtype(value, buffer.dtype))
        self.missing = False

    def arrive_late(self):
        """The values are there, and no module has asked for them.

        Raises: as begin(); RuntimeError: the pass has changed a buffer already,
          which the values would undo.
        """
        if not self.missing:
            return
        for i, (before, version) in enumerate(self._before):
            now = self._current(i)
            if now is not before or _version(now) != version:
                raise RuntimeError(
                    f'buffer "{self._names[i]}" was changed outside of its '
                    "module's forward, before the values of this step had "
                    "arrived: call step.await_values() first, or leave "
                    "early=True out")
        self.arrive()

    def hand_in(self, native):
        """A pass has ended: its changes are gradients.

        Elements that have not changed may be infinite or NaN.

        Raises: as begin(); RuntimeError: a new value is lost in its difference
          to the old one.
        """
        if self._complex is not None:
            self._complex.check()
        with torch.no_grad():
            for i, value in enumerate(self._values):
                buffer = self._current(i).detach().to("cpu", value.dtype)
                # Also of bits such as NaN. What is not ready is absent.
                if torch.equal(_bytes(value), _bytes(buffer)):
                    continue
                # A server subtracts the mean of these changes, as if they were
                # gradients. An infinity less itself is no number.
                same = (value == buffer) | (value.isnan() & buffer.isnan())
                change = (value - buffer).masked_fill_(same, 0)
                self._check_change(i, value, buffer, change)
                self._changes[i].copy_(change)
                native.ready(self._first + i)

    def _check_change(self, i, value, buffer, change):
        eps = torch.finfo(value.dtype).eps
        # Of small values the difference loses what does not matter.
        if float(value.abs().max()) * eps < 1:
            return
        near = max(1e-3, 8 * eps) * buffer.abs()
        lost = ((value - change - buffer).abs() > near) & (
            value.abs() * eps >= 1)
        # Whether others than these may become infinite, the job says.
        lost |= ~change.isfinite() & buffer.isfinite()
        if not lost.any():
            return
        raise RuntimeError(
            f'buffer "{self._names[i]}" was changed from '
            f"{float(value[lost][0]):g} to {float(buffer[lost][0]):g}: the job "
            "averages the difference of the two, in which the new value is "
            "lost; begin with a number as small as those that follow, or make "
            'the Worker with buffers="local"')

    def _current(self, i):
        module, key = self._places[i]
        like = self._like[i]
        # One that is not there has moved, as by a parametrization.
        buffer = current(module._buffers, key, self._tensors[i])
        if (buffer is None or buffer.shape != like.shape
                or buffer.dtype != like.dtype):
            raise RuntimeError(
                f'buffer "{self._names[i]}" is {_text(buffer)}, and was '
                f"{_text(like)} when the Worker was made: keep its shape and "
                'dtype, or make the Worker with buffers="local"')
        return buffer


class _ComplexBuffers:
    """Warns, once, if a pass has changed a complex buffer of the state_dict.

    The job does not average it, and it is in no checkpoint. Most of them are
    constants, such as rotations of positions, and need neither.

    Args:
      model: has them.
    """

    def __init__(self, model):
        kept = model.state_dict(keep_vars=True)
        self._before = [
            (name, *place(model, name), buffer, _version(buffer))
            for name, buffer in model.named_buffers()
            if name in kept and buffer.is_complex()]

    def check(self):
        for name, module, key, before, version in self._before:
            now = current(module._buffers, key, before)
            if now is before and _version(now) == version:
                continue
            self._before = []
            warnings.warn(
                f'buffer "{name}" is of {before.dtype}, and a pass has changed '
                "it: the job averages floating-point buffers alone, so each "
                "worker keeps its own, and no checkpoint has it; register "
                "torch.view_as_real of it as the buffer", RuntimeWarning,
                stacklevel=level_of_program())
            return


def _version(tensor):
    # Tensors of torch.inference_mode() do not count their changes.
    return None if tensor.is_inference() else tensor._version


def _bytes(tensor):
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def _text(buffer):
    return ("None" if buffer is None else
            f"of {buffer.dtype} and shape {tuple(buffer.shape)}")
