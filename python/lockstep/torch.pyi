import os
from typing import Optional, Sequence, Union

import torch

from . import _base
from ._torch_embedding import Embedding as Embedding
from ._torch_evaluator import Evaluator as Evaluator
from ._torch_load import load as load
from ._torch_sampler import Sampler as Sampler

__all__ = ["Embedding", "Evaluator", "Sampler", "Step", "Worker", "load"]

class Step(_base.BaseStep):
    def indices(self, n: int, ahead: int = 0) -> torch.Tensor: ...
    def await_values(self) -> None: ...
    def prefetch(self, ids: torch.Tensor,
                 table: Optional[Embedding] = None) -> None: ...
    def backward(self, loss: torch.Tensor,
                 examples: Optional[int] = None,
                 gradient: Optional[torch.Tensor] = None,
                 retain_graph: Optional[bool] = None,
                 create_graph: bool = False,
                 last: Optional[bool] = None) -> None: ...
    def push(self, loss: Union[float, torch.Tensor] = 0.0,
             examples: Optional[int] = None) -> None: ...

class Worker(_base.BaseWorker[Step]):
    def __init__(self, model: torch.nn.Module, buffers: str = "mean",
                 name: Optional[str] = None, keep_gradients: bool = True, *,
                 tf_config: Union[str, "os.PathLike[str]", None] = None,
                 tls_dir: Union[str, "os.PathLike[str]", None] = None,
                 shared_memory: bool = True,
                 log_level: Optional[str] = None,
                 chief_wait: float = 600.0,
                 job: Union[str, "os.PathLike[str]", None] = None,
                 settings: Sequence[str] = (),
                 state_dir: Union[str, "os.PathLike[str]", None] = None,
                 status_address: Optional[str] = None,
                 early: bool = False) -> None: ...
