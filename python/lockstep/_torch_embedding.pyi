from typing import Any, Dict, Optional

import torch

class Embedding(torch.nn.Module):
    rows: int
    grows: bool
    dim: int
    std: float
    def __init__(self, rows: Optional[int] = None, dim: Optional[int] = None,
                 row_limit: Optional[int] = None, std: float = 1.0) -> None: ...
    def __getstate__(self) -> Dict[str, Any]: ...
    def extra_repr(self) -> str: ...
    def forward(self, ids: torch.Tensor) -> torch.Tensor: ...
