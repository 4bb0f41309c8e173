from typing import Sequence

import torch

class Unsent:
    def __init__(self, names: Sequence[str],
                 parameters: Sequence[torch.Tensor]) -> None: ...
    def check(self, number: int) -> None: ...
