"""Lockstep: synchronous training that does not wait for the slowest machine.

``lockstep.Worker`` makes a program a worker with numpy arrays,
``lockstep.torch.Worker`` one with a PyTorch model. Both join the job that
TF_CONFIG names; ``lockstep run`` sets it.
"""

import pkgutil

# Generated messages of proto/lockstep/v1 are modules lockstep.v1, elsewhere.
__path__ = pkgutil.extend_path(__path__, __name__)

from ._errors import need_native

need_native(__path__)

from ._errors import Error, JobFailed, JobStopped, Refused
from ._evaluator import Checkpoint, Evaluator
from ._worker import Rows, Step, Table, Worker

__all__ = [
    "Checkpoint", "Error", "Evaluator", "JobFailed", "JobStopped", "Refused",
    "Rows", "Step", "Table", "Worker"
]
