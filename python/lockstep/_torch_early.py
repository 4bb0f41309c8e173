"""Lets the values of an early step arrive where a model's modules use them."""

import functools
import weakref


def add_hooks(worker, model, parameters, buffers):
    """Calls ``worker._arrive(numbers, buffers)`` before each forward.

    ``numbers`` are those of the parameters that the module may use, and
    ``buffers`` is true if it may use a shared buffer. A module that has some of
    its own may use those of the modules below it, too, without their forward:
    MultiheadAttention does.

    Args:
      worker: held weakly. What holds its worker would keep it in the job.
      parameters: the tensors, by number.
      buffers: the tensors of shared buffers.
    """
    numbers = {id(p): i for i, p in enumerate(parameters)}
    shared = {id(buffer) for buffer in buffers}
    this = weakref.ref(worker)
    for module in model.modules():
        own = [*module.parameters(recurse=False), *module.buffers(recurse=False)]
        if not any(id(each) in numbers or id(each) in shared for each in own):
            continue
        hook = functools.partial(
            _before_forward, this,
            sorted({numbers[id(p)] for p in module.parameters()
                    if id(p) in numbers}),
            any(id(each) in shared for each in module.buffers()))
        handle = module.register_forward_pre_hook(hook)
        # Before those of weight_norm and the like, which read parameters.
        module._forward_pre_hooks.move_to_end(handle.id, last=False)


def _before_forward(this, numbers, buffers, _module, _args):
    worker = this()
    if worker is not None:
        worker._arrive(numbers, buffers)
