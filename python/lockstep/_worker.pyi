import os
from typing import Any, Mapping, Optional, Sequence, Tuple, Union

import numpy as np
import numpy.typing as npt

from . import _base

class Rows:
    indices: npt.NDArray[np.int64]
    values: npt.NDArray[Any]
    def __init__(self, indices: npt.ArrayLike,
                 values: npt.ArrayLike) -> None: ...
    def sums(self) -> Tuple[npt.NDArray[np.int64], npt.NDArray[Any]]: ...

class Table:
    rows: int
    grows: bool
    width: Tuple[int, ...]
    mean: float
    std: float
    def __init__(self, rows: Optional[int] = None,
                 dim: Union[int, Sequence[int]] = 1,
                 row_limit: Optional[int] = None, mean: float = 0.0,
                 std: float = 0.0) -> None: ...

class Step(_base.BaseStep):
    values: Mapping[str, npt.NDArray[Any]]
    def indices(self, n: int, ahead: int = 0) -> npt.NDArray[np.int64]: ...
    def rows(self, name: str,
             ids: npt.ArrayLike) -> npt.NDArray[np.float32]: ...
    def prefetch(self, ids: npt.ArrayLike,
                 table: Optional[str] = None) -> None: ...
    def push(self,
             gradients: Mapping[str, Union[npt.ArrayLike, Rows, None]],
             loss: float = 0.0, examples: Optional[int] = None) -> bool: ...

class Worker(_base.BaseWorker[Step]):
    def __init__(self, variables: Mapping[str, Union[npt.ArrayLike, Table]],
                 name: Optional[str] = None, *,
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
