"""An evaluator whose checkpoints are copied into a PyTorch model."""

from . import _evaluator
from ._torch_describe import check_model
from ._torch_load import fill


class Evaluator(_evaluator.Evaluator):
    """Makes this process the evaluator of the job that TF_CONFIG names.

        evaluator = lockstep.torch.Evaluator(model)
        for checkpoint in evaluator.checkpoints():
            checkpoint.report(test_accuracy=accuracy_of(model))

    Before the body of the loop runs, ``model`` has the checkpoint's values.
    ``lockstep run --evaluator 'python3 eval.py'`` starts one.

    Args:
      model: as for Worker.
      name, tf_config, tls_dir, log_level, averaged: as lockstep.Evaluator.

    Raises:
      JobFailed, JobStopped, Refused: with the chief's reason.
      ValueError: TF_CONFIG is malformed, or its task is no evaluator.
    """

    def __init__(self, model, **options):
        check_model(model)
        super().__init__(**options)
        self._model = model

    def _open(self, step, tensors):
        fill(self._model, step, tensors)
        return super()._open(step, tensors)
