"""What a PyTorch model has, as the job is told of it."""

import torch

from . import _base

_DTYPES = {
    torch.float16: "float16",
    torch.float32: "float32",
    torch.float64: "float64",
    torch.bfloat16: "bfloat16",
}


def check_model(model):
    """TypeError: a model that is no module; the message has the fix."""
    if isinstance(model, torch.nn.Module):
        return
    if isinstance(model, type):
        raise TypeError(f"model is the class {model.__name__}; give an object "
                        f"of it: {model.__name__}(...)")
    raise TypeError(f"model is of the type {type(model).__name__}; give a "
                    "torch.nn.Module")


def is_trained(p):
    """True if a parameter is a variable of the job: one that is not frozen,
    and has elements, or has no shape yet, which describe() refuses."""
    return p.requires_grad and (isinstance(
        p, torch.nn.parameter.UninitializedTensorMixin) or p.numel() > 0)


def check_values(what, key, tensor):
    """ValueError: a tensor on the meta device, or of a lazy module that the
    model has not used yet: it has no values."""
    if tensor.is_meta:
        raise ValueError(f'{what} "{key}" is on the device "meta", so it has no '
                         "values: move the model with to_empty(device=\"cpu\") "
                         "and initialize it first")
    if isinstance(tensor, torch.nn.parameter.UninitializedTensorMixin):
        raise ValueError(f'{what} "{key}" has no shape yet; run the model once '
                         "before it joins")


def sent_dtype(dtype):
    """The dtype that a buffer has in the job: integers are counts, of which the
    workers' mean may be no integer."""
    return dtype if dtype.is_floating_point else torch.float32


def describe(what, key, tensor, buffer):
    """A parameter or buffer as the native module takes it.

    Raises: ValueError: a dtype or a layout that cannot be trained; no values
      yet; no memory; inference_mode.
    """
    if buffer:
        tensor = tensor.to(sent_dtype(tensor.dtype))
    if tensor.dtype not in _DTYPES:
        raise ValueError(f'{what} "{key}" is of {tensor.dtype}; it must be '
                         "float32, float16, bfloat16 or float64"
                         + ("; keep the pairs that torch.view_as_real() gives, "
                            "and compute with view_as_complex() of them"
                            if tensor.is_complex() else ""))
    check_values(what, key, tensor)
    if tensor.layout is not torch.strided:
        raise ValueError(f'{what} "{key}" has the layout {tensor.layout}; it '
                         "must be torch.strided: convert it with to_dense()"
                         + (', or make the Worker with buffers="local"'
                            if buffer else ""))
    if tensor.is_inference() or torch.is_inference_mode_enabled():
        raise ValueError(f'{what} "{key}" cannot be trained in torch.'
                         "inference_mode(): make the model and its Worker "
                         "outside of it")
    start = tensor.detach().to("cpu", copy=True).contiguous()
    # A new tensor: of a scalar, and of a parameter that is a view.
    flat = start.reshape(-1).view(torch.uint8).numpy()
    return _base.described(key, tensor.shape, _DTYPES[tensor.dtype], flat,
                           buffer=buffer)
