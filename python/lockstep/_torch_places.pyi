from typing import Sequence, Tuple

import torch

_Named = Sequence[Tuple[str, torch.Tensor]]

def check_memory(parameters: _Named, buffers: _Named) -> None: ...

class Places:
    def __init__(self, model: torch.nn.Module) -> None: ...
    def check(self) -> None: ...
