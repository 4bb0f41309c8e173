from typing import Any, Callable, Optional

import torch

class HostCopies:
    def __init__(
        self,
        device: torch.device,
        hand_in: Callable[[int], None],
        cuda: Any = ...,
        page_locked: Optional[Callable[[torch.Tensor], torch.Tensor]] = ...,
    ) -> None: ...
    def start(
        self, i: int, gradient: torch.Tensor, target: torch.Tensor
    ) -> None: ...
    def settle(self) -> None: ...
    def drop(self) -> None: ...
