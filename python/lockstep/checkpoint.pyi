import os
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np
import numpy.typing as npt

_Path = Union[str, "os.PathLike[str]"]
_Tensor = Tuple[str, Sequence[int], npt.NDArray[np.uint8]]

class Damaged(ValueError): ...

def steps(directory: _Path) -> List[int]: ...
def saved_at(directory: _Path, step: int) -> int: ...
def array(kind: str, shape: Sequence[int],
          memory: npt.NDArray[np.uint8]) -> npt.NDArray[Any]: ...
def read(directory: _Path, step: Optional[int] = None,
         averaged: Optional[bool] = False
         ) -> Tuple[int, Dict[str, _Tensor]]: ...
