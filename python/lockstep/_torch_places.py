"""Where a model has its parameters, and whether they are those of the job."""

import collections
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
            if tensor.numel():
                sharers[tensor.device, storage_of(tensor).data_ptr()].append(
                    (f'{what} "{name}"', what == "parameter", tensor))
    for those in sharers.values():
        for first, second in _overlaps(those):
            # Two buffers see the same changes.
            if first[1] and _share_an_element(first[2], second[2]):
                raise ValueError(
                    f"{second[0]} shares memory with {first[0]}, and the job "
                    "would train them apart: let both be the same "
                    "torch.nn.Parameter, or give one a clone()")


def _range(tensor):
    """The first byte of a tensor in its storage, and the one after the last."""
    last = sum((n - 1) * stride
               for n, stride in zip(tensor.shape, tensor.stride()))
    first, size = tensor.storage_offset(), tensor.element_size()
    return first * size, (first + last + 1) * size


def _overlaps(those):
    """Pairs of which one begins within the range of the other.

    A program may have laid thousands of parameters side by side.
    """
    ranges = [_range(each[2]) for each in those]
    reaching = []
    for i in sorted(range(len(those)), key=ranges.__getitem__):
        reaching = [k for k in reaching if ranges[k][1] > ranges[i][0]]
        for k in reaching:
            yield those[min(i, k)], those[max(i, k)]
        reaching.append(i)


def _share_an_element(one, other):
    begin = min(_range(one)[0], _range(other)[0])
    # Untouched, so that it costs no memory.
    base = np.empty(max(_range(one)[1], _range(other)[1]) - begin, np.uint8)
    return np.shares_memory(_places_of(one, base, begin),
                            _places_of(other, base, begin))


def _places_of(tensor, base, begin):
    """A tensor's elements in the bytes from ``begin`` on, as of any type."""
    size = tensor.element_size()
    return np.ndarray(tensor.shape, f"V{size}", base,
                      tensor.storage_offset() * size - begin,
                      [size * stride for stride in tensor.stride()])


def _check_shape(name, shape, first):
    if shape != first:
        raise RuntimeError(
            f'parameter "{name}" has the shape {tuple(shape)} now, and had '
            f"{tuple(first)} when the Worker was made: the job cannot change "
            "it; give the model its last shape before, and train it in a job "
            "of its own")


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
                self._trained.append((name, p, p.shape, *place(model, name)))
            else:
                self._frozen.append((name, *place(model, name)))
        self._ids = {id(p) for _, p, *_ in self._trained}
        self._shapes = {name: shape for name, _, shape, *_ in self._trained}
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
        for name, p, shape, module, key in self._trained:
            _check_shape(name, p.shape, shape)
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
                    "when the Worker was made: the job does not train it; make "
                    "the Worker while it is unfrozen, and freeze it then, or "
                    "leave it frozen")
        parts = self._parts_now()
        if (len(parts) != len(self._parts)
                or not all(map(operator.is_, parts, self._parts))):
            self._check_all()

    def as_sent(self, name, gradient):
        """Returns the gradient of the trained parameter as a dense tensor.

        Raises: RuntimeError: the parameter has another shape, with which a copy
          might be more elements than the gradient has.
        """
        _check_shape(name, gradient.shape, self._shapes[name])
        # As of torch.nn.Embedding(sparse=True): it is sent as a dense variable.
        if gradient.is_sparse:
            gradient = gradient.to_dense()
        return gradient.detach()

    def _check_all(self):
        for name, p in self._model.named_parameters():
            if p.requires_grad and id(p) not in self._ids:
                raise RuntimeError(
                    f'parameter "{name}" was not in the model when the Worker '
                    "was made: the job does not train it; make the Worker once "
                    "the model has all its modules and parameters")
        self._look()
