from ._errors import Error as Error
from ._errors import JobFailed as JobFailed
from ._errors import JobStopped as JobStopped
from ._errors import Refused as Refused
from ._evaluator import Checkpoint as Checkpoint
from ._evaluator import Evaluator as Evaluator
from ._worker import Rows as Rows
from ._worker import Step as Step
from ._worker import Table as Table
from ._worker import Worker as Worker

__all__ = [
    "Checkpoint", "Error", "Evaluator", "JobFailed", "JobStopped", "Refused",
    "Rows", "Step", "Table", "Worker"
]
