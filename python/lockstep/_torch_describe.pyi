import torch

from ._native import _Described

def describe(what: str, key: str, tensor: torch.Tensor,
             buffer: bool) -> _Described: ...
