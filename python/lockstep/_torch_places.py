"""Where a model has its parameters, and whether they are those of the job."""

import collections
import itertools
import operator

import numpy as np

from ._torch_values import current, place, storage_of


def check_memory(parameters, buffers):
    """Checks that a value which is copied into one tensor changes no other.

    The job has a variable for each, so the values of the last one would replace
    those of the others. A tensor that is no variable may share the memory: it
    then shows the values of each step.

    Args:
      parameters, buffers: names and tensors of those that are variables.

    Raises: ValueError: a parameter shares memory with another one, or with a
      buffer; the message has both.
    """
    sharers = collections.defaultdict(list)
    for what, named in (("parameter", parameters), ("buffer", buffers)):
        for name, tensor in named:
            key = tensor.device, storage_of(tensor).data_ptr()
            sharers[key].append((f'{what} "{name}"', what, tensor))
    for those in sharers.values():
        # Untouched, so that it costs no memory.
        base = np.empty(storage_of(those[0][2]).nbytes(), np.uint8)
        for first, second in itertools.combinations(those, 2):
            # Two buffers see the same changes.
            if first[1] == "parameter" and np.shares_memory(
                    _places_of(first[2], base), _places_of(second[2], base)):
                raise ValueError(
                    f"{second[0]} shares memory with {first[0]}, and the job "
                    "would train them apart: let both be the same "
                    "torch.nn.Parameter, or give one a clone()")


def _places_of(tensor, base):
    """A tensor's elements where they are in its storage, as of any type."""
    size = tensor.element_size()
    return np.ndarray(tensor.shape, f"V{size}", base,
                      tensor.storage_offset() * size,
                      [size * stride for stride in tensor.stride()])


class Places:
    """Finds out that a program changes what a model consists of.

    The job trains the parameters that require gradients when the Worker is made;
    the loop would leave others as they are without a word.

    Args:
      model: has the parameters.
    """

    def __init__(self, model):
        self._model = model
        self._trained, self._frozen = [], []
        for name, p in model.named_parameters():
            if p.requires_grad:
                self._trained.append((name, p, *place(model, name)))
            else:
                self._frozen.append((name, *place(model, name)))
        self._ids = {id(p) for _, p, _, _ in self._trained}
        self._look()

    def _look(self):
        self._modules = list(self._model.modules())
        self._parts = self._parts_now()

    def _parts_now(self):
        """What the modules have: modules, and parameters or None."""
        parts = []
        for module in self._modules:
            parts.extend(module._modules.values())
            parts.extend(module._parameters.values())
        return parts

    def check(self):
        """RuntimeError: a parameter that the job does not train, with the fix."""
        for name, p, module, key in self._trained:
            # One that is not there has moved, as by a parametrization.
            if current(module._parameters, key, p) is not p:
                raise RuntimeError(
                    f'parameter "{name}" is another one than when the Worker '
                    "was made: the job cannot train it; change values in "
                    "place, under torch.no_grad(), or replace it before")
        for name, module, key in self._frozen:
            p = current(module._parameters, key, None)
            if p is not None and p.requires_grad:
                raise RuntimeError(
                    f'parameter "{name}" requires a gradient, and was frozen '
                    "when the Worker was made: the job does not train it; "
                    "unfreeze it before the Worker is made, or leave it frozen")
        parts = self._parts_now()
        if (len(parts) != len(self._parts)
                or not all(map(operator.is_, parts, self._parts))):
            self._check_all()

    def _check_all(self):
        for name, p in self._model.named_parameters():
            if p.requires_grad and id(p) not in self._ids:
                raise RuntimeError(
                    f'parameter "{name}" was not in the model when the Worker '
                    "was made: the job does not train it; make the Worker once "
                    "the model has all its modules and parameters")
        self._look()
