"""The values of a checkpoint, on their way into a PyTorch model."""

import warnings

import torch

from . import checkpoint
from ._torch_describe import check_model, check_values, is_trained
from ._torch_embedding import Embedding
from ._torch_values import as_dtype, place


def fill(model, step, tensors):
    """Copies the tensors of a checkpoint into a model.

    Raises: ValueError: what training changes is missing; another shape; a
      parameter or buffer without values. Nothing has changed then.
    """
    targets = []
    for key, p in model.named_parameters():
        # A program that only reads a model may freeze what the job has trained.
        if is_trained(p) or key in tensors:
            check_values("parameter", key, p)
            targets.append((key, p))
    absent = []
    for key, buffer in shared_buffers(model):
        if key in tensors:
            targets.append((key, buffer))
        else:
            absent.append(key)
    tables = [(table_name(key), module)
              for key, module in model.named_modules()
              if isinstance(module, Embedding)]
    for key, each in targets + tables:
        if key not in tensors:
            raise ValueError(f'the checkpoint of step {step} has no "{key}"'
                             + (_wrapped([k for k, _ in targets + tables],
                                         tensors) or _names(tensors)))
        if isinstance(each, Embedding):
            each._check_shape(tensors, key)
            continue
        shape = tensors[key][1]
        if tuple(shape) != tuple(each.shape):
            raise ValueError(
                f'the checkpoint of step {step} has "{key}" with shape '
                f"{tuple(shape)}; the model has {tuple(each.shape)}")
    with torch.no_grad():
        for key, each in targets:
            kind, shape, memory = tensors[key]
            # PyTorch has no tensors that are read-only.
            values = torch.from_numpy(
                checkpoint.array(kind, shape, memory.copy()))
            each.copy_(as_dtype(values, each.dtype))
    for key, module in tables:
        module._load(tensors, key, checkpoint.array)
    if absent:
        # Level 3 is the program's line that calls load().
        warnings.warn(
            f'the checkpoint of step {step} has no "{absent[0]}", as of a '
            'Worker(model, buffers="local"): the model keeps its own values of '
            f"the {len(absent)} buffers that are not there", RuntimeWarning,
            stacklevel=3)


def _names(tensors):
    """The names that a checkpoint has, where they are another model's."""
    first = [f'"{name}"' for name in list(tensors)[:3]]
    more = ", ..." if len(tensors) > 3 else ""
    return (f", but {', '.join(first)}{more}: make the model as that job did, "
            "or name the directory of this model's job")


def _wrapped(keys, tensors):
    """What to do where the job's model was, or the model here is, in a wrapper.

    As torch.compile() and DistributedDataParallel make them: all names begin
    with that of the module in it.
    """
    for name in tensors:
        prefix = name[:-len(keys[0])]
        if prefix.endswith(".") and all(prefix + key in tensors
                                        for key in keys):
            return (f', but "{name}": the job trained the model in a wrapper, as '
                    "of torch.compile(); give it in such a one")
        prefix = keys[0][:-len(name)]
        if prefix.endswith(".") and all(
                key.startswith(prefix) and key[len(prefix):] in tensors
                for key in keys):
            return (f', but "{name}": this model is in a wrapper, as of '
                    "torch.compile(), and the job's was not; give the module in "
                    "it")
    return ""


def shared_buffers(model):
    """Names and tensors of the buffers that the job averages.

    Those are the floating-point ones, and the number of batches that a BatchNorm
    with ``momentum=None`` divides by. One whose elements are in one place, as
    after expand(), cannot be written: the model gets a copy of it.

    Raises: ValueError: one has no values yet.
    """
    kept = model.state_dict(keep_vars=True)
    shared = []
    for name, buffer in model.named_buffers():
        if name not in kept:
            continue
        check_values("buffer", name, buffer)
        if not buffer.numel() or not (buffer.is_floating_point()
                                      or _is_divisor(model, name)):
            continue
        # Only tensors of this layout have strides.
        if (buffer.layout is torch.strided and 0 in buffer.stride()
                and not buffer.is_contiguous()):
            module, key = place(model, name)
            buffer = module._buffers[key] = buffer.contiguous()
        shared.append((name, buffer))
    return shared


def _is_divisor(model, name):
    module, key = place(model, name)
    return (key == "num_batches_tracked"
            and getattr(module, "momentum", 0) is None)


def table_name(key):
    """The name in the job of the table that a model has as ``key``."""
    return f"{key}.weight" if key else "weight"


def load(model, directory, step=None, averaged=False):
    """Copies a checkpoint's values into ``model``, buffers and tables too.

    Frozen parameters get the values that the checkpoint has of them. Warns of
    buffers that the workers kept to themselves: the checkpoint has none.

    Args:
      directory: the job's checkpoint.directory.
      step: which checkpoint; None: the newest.
      averaged: of variables of which the job keeps moving averages
        (``moving_average``), copy these in place of the values.

    Returns: the step.
    Raises:
      FileNotFoundError: there is no such checkpoint.
      TypeError: ``step`` is no integer; or ``model`` is no module.
      ValueError: a parameter that requires a gradient is missing in it, or a
        parameter or buffer has another shape, or no values, as on the meta
        device; or ``averaged`` is true, and there is no average.
    """
    check_model(model)
    found, tensors = checkpoint.read(directory, step, bool(averaged))
    fill(model, found, tensors)
    return found
