import torch

from ._native import _Described

def check_model(model: torch.nn.Module) -> None: ...
def describe(what: str, key: str, tensor: torch.Tensor,
             buffer: bool) -> _Described: ...
