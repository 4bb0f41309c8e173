import os
from typing import Any, Dict, Iterator, Optional, Union

import numpy.typing as npt

class Checkpoint:
    step: int
    def values(self) -> Dict[str, npt.NDArray[Any]]: ...
    def report(self, **figures: float) -> None: ...

class Evaluator:
    def __init__(self, name: Optional[str] = None,
                 tf_config: Union[str, "os.PathLike[str]", None] = None,
                 tls_dir: Union[str, "os.PathLike[str]", None] = None,
                 log_level: Optional[str] = None,
                 chief_wait: float = 600.0,
                 averaged: Optional[bool] = None) -> None: ...
    def checkpoints(self) -> Iterator[Checkpoint]: ...
    def close(self) -> None: ...
