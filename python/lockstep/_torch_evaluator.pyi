import os
from typing import Optional, Union

import torch

from . import _evaluator

class Evaluator(_evaluator.Evaluator):
    def __init__(self, model: torch.nn.Module, *, name: Optional[str] = None,
                 tf_config: Union[str, "os.PathLike[str]", None] = None,
                 tls_dir: Union[str, "os.PathLike[str]", None] = None,
                 log_level: Optional[str] = None,
                 chief_wait: float = 600.0,
                 averaged: Optional[bool] = None) -> None: ...
