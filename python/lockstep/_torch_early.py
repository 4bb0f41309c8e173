"""Lets the values of an early step arrive where a model's modules use them."""

import weakref

import torch
from torch.nn.modules.module import register_module_forward_pre_hook

# PyTorch 1 has no torch.compile.
_compiles = getattr(getattr(torch, "compiler", None), "is_compiling",
                    lambda: False)


def add_hook(worker, model, parameters, buffers):
    """Calls ``worker._arrive(numbers, buffers)`` before each forward.

    ``numbers`` are those of the parameters that the module may use, and
    ``buffers`` is true if it may use a shared buffer. A module that has some of
    its own may use those of the modules below it, too, without their forward:
    MultiheadAttention does.

    The hook is one of all modules, and passes over those of other models. One
    that a module has is in its copies, too, which other threads may use and
    whose values do not arrive; and such a module could neither be pickled nor
    be compiled by ``torch.jit.script``. PyTorch calls it before those of
    weight_norm and the like, which read parameters. What ``torch.compile`` or
    ``torch.jit.script`` has made of a module is one module: all of its values
    arrive before it.

    Args:
      worker: held weakly. What holds its worker would keep it in the job.
      parameters: the tensors, by number.
      buffers: the tensors of shared buffers.
    """
    numbers = {id(p): i for i, p in enumerate(parameters)}
    shared = {id(buffer) for buffer in buffers}

    def used_below(module):
        return (sorted({numbers[id(p)] for p in module.parameters()
                        if id(p) in numbers}),
                any(id(each) in shared for each in module.buffers()))

    uses = {}
    for module in model.modules():
        own = [*module.parameters(recurse=False), *module.buffers(recurse=False)]
        # In evaluation the first reads the parameters of those below it; the
        # second calls those without a hook.
        reads = isinstance(module, (torch.nn.TransformerEncoderLayer,
                                    torch.jit.ScriptModule))
        if not reads and not any(
                id(each) in numbers or id(each) in shared for each in own):
            continue
        uses[id(module)] = weakref.ref(module), used_below(module)
    this = weakref.ref(worker)

    def before_forward(module, _args):
        # Compiled code must not have these lines.
        if _compiles():
            return
        worker = this()
        if worker is None:
            return
        if type(module).__name__ == "OptimizedModule":
            worker._arrive(*used_below(module))
            return
        of, used = uses.get(id(module), (None, None))
        # Another module may have the place in memory of one that is gone.
        if of is not None and of() is module:
            worker._arrive(*used)

    handle = register_module_forward_pre_hook(before_forward)
    weakref.finalize(worker, handle.remove).atexit = False
