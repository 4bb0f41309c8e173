from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np
import numpy.typing as npt

_Tensor = Tuple[str, Sequence[int], npt.NDArray[np.uint8]]

def steps(directory: str) -> List[int]: ...
def array(kind: str, shape: Sequence[int],
          memory: npt.NDArray[np.uint8]) -> npt.NDArray[Any]: ...
def read(directory: str,
         step: Optional[int] = None) -> Tuple[int, Dict[str, _Tensor]]: ...
