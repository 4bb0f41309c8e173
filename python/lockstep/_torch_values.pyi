from typing import Sequence, Tuple

import torch

from . import _native

LARGE: int

def place(model: torch.nn.Module,
          name: str) -> Tuple[torch.nn.Module, str]: ...
def view(memory: _native.Memory, like: torch.Tensor) -> torch.Tensor: ...

class Values:
    moved: int
    def __init__(self, parameters: Sequence[torch.Tensor],
                 first: int) -> None: ...
    def adopt(self, native: _native.Session, moves: bool) -> None: ...
    def begin(self, native: _native.Session,
              again: bool = ...) -> None: ...
