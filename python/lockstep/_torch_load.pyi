import os
from typing import List, Mapping, Optional, Tuple, Union

import torch

from .checkpoint import _Tensor

def fill(model: torch.nn.Module, step: int,
         tensors: Mapping[str, _Tensor]) -> None: ...
def shared_buffers(
    model: torch.nn.Module
) -> List[Tuple[str, torch.Tensor]]: ...
def table_name(key: str) -> str: ...

def load(model: torch.nn.Module, directory: Union[str, "os.PathLike[str]"],
         step: Optional[int] = None, averaged: bool = False) -> int: ...
