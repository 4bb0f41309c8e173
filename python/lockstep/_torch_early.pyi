from typing import Sequence

import torch

from . import torch as _torch

def add_hook(worker: _torch.Worker, model: torch.nn.Module,
              parameters: Sequence[torch.Tensor],
              buffers: Sequence[torch.Tensor]) -> None: ...
