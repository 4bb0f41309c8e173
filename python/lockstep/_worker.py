"""Workers whose values and gradients are numpy arrays."""

import numpy as np

from . import _native, _session

_DTYPES = {
    np.dtype(np.float16): "float16",
    np.dtype(np.float32): "float32",
    np.dtype(np.float64): "float64",
}


class Rows:
    """A gradient of some rows of a table.

    Args:
      indices: int64, shape (n,), as ``Step.rows`` has them; each once.
      values: shape (n,) + the shape of one row.
    """

    def __init__(self, indices, values):
        self.indices = np.asarray(indices, dtype=np.int64)
        self.values = np.asarray(values)
        if len(self.indices) != len(self.values):
            raise ValueError(
                f"Rows has {len(self.indices)} indices and "
                f"{len(self.values)} rows; give one row for each index")


class Step:
    """One pass of a worker: the gradient of one share of one step.

    Attributes:
      number: committed steps; the pass computes the next one.
      share: 0, unless there are fewer workers than gradients in a step.
      seed: for random numbers; the same if the pass is computed again.
      values: dict from name to array, read-only, of this step. The arrays are
        overwritten when the next step begins.
    """

    def __init__(self, worker, number, share, batch, seed):
        self._worker = worker
        self._batch = batch
        self.number = number
        self.share = share
        self.seed = seed
        self.values = worker._values

    def indices(self, n):
        """Returns this pass's examples of a data set of ``n``.

        A function of the job's seed, the step and the share: a pass that is
        computed again gets the same ones.

        Returns: int64 array, shape (batch_size,), elements in [0, n).
        Raises: ValueError: too few examples for a batch of each worker.
        """
        return self._worker._indices(n, self._batch)

    def push(self, gradients, loss=0.0, examples=None):
        """Hands in the gradients of the mean loss over this pass's examples.

        Args:
          gradients: dict from name to array of the variable's shape; names that
            are missing, or None, count as zeros.
          loss: mean loss, for the status; no effect on training.
          examples: how many; default the job's batch_size.

        Returns: False if nobody needed the pass any more.
        Raises: ValueError: an unknown name, another shape, or a dtype that
          cannot be cast to the variable's.
        """
        return self._worker._push(gradients, float(loss), examples)


class Worker:
    """A worker of the job that TF_CONFIG names, for any framework.

    Args:
      variables: dict from name to array: float16, float32 or float64, of any
        shape without zeros. The first worker's become the job's.
      name: the job's name, to refuse another one; None: any.
      tf_config: a file, in place of the environment variable.
      tls_dir: certificates, as the flag --tls_dir; default
        ``LOCKSTEP_TLS_DIR``.
      shared_memory: False: send everything over the network.

    Raises:
      ValueError: variables or TF_CONFIG that cannot be; the message has the
        field and the fix.
      RuntimeError: this process is a worker already.
    """

    def __init__(self, variables, name=None, **options):
        self._names = list(variables)
        arrays = {}
        described = []
        for key, array in variables.items():
            array = np.ascontiguousarray(array).reshape(np.shape(array))
            if array.dtype not in _DTYPES:
                raise ValueError(
                    f'variable "{key}" is of {array.dtype}; it must be float16,'
                    " float32 or float64: convert it with astype")
            arrays[key] = array
            described.append((key, list(array.shape), _DTYPES[array.dtype],
                              array if array.size else None, 0))
        self._arrays = arrays
        self._values = {}
        for key, array in arrays.items():
            self._values[key] = np.empty_like(array)
        self._membership = None
        self._loop = _session.Loop(described, name, **options)
        self._pending = self._wait()

    def _wait(self):
        try:
            number, share, batch, seed, membership = self._loop.wait()
        except _session.JobEnded:
            return None
        native = self._loop.native
        if membership != self._membership:
            self._membership = membership
            self._job = native.job()
            self._from, self._to = {}, {}
            for i, key in enumerate(self._names):
                like = self._arrays[key]
                self._from[key] = native.value(i).view(like.dtype).reshape(
                    like.shape)
                self._to[key] = native.gradient(i).view(like.dtype).reshape(
                    like.shape)
        for key, array in self._values.items():
            array.setflags(write=True)
            np.copyto(array, self._from[key])
            array.setflags(write=False)
        return Step(self, number, share, batch, seed)

    @property
    def batch_size(self):
        """Examples per worker and pass."""
        return self._job[2]

    @property
    def index(self):
        """The index of this worker."""
        return self._job[4]

    @property
    def num_workers(self):
        """How many workers share the data."""
        return self._job[5]

    def steps(self):
        """Yields a Step for each pass, until the job ends.

        Raises:
          JobFailed, JobStopped, Refused: with the chief's reason.
          RuntimeError: a step without a push.
        """
        while self._pending is not None:
            step, self._pending = self._pending, None
            try:
                yield step
                self._pending = self._wait()
            except _native.EndOfInput:
                return

    def _indices(self, n, batch):
        return self._loop.native.examples(int(n), batch)

    def _push(self, gradients, loss, examples):
        unknown = [key for key in gradients if key not in self._to]
        if unknown:
            raise ValueError(f'there is no variable "{unknown[0]}"; the model '
                             f"has {', '.join(self._names)}")
        native = self._loop.native
        checked = {}
        for key, gradient in gradients.items():
            if gradient is None:
                continue
            gradient = np.asarray(gradient)
            if gradient.shape != self._to[key].shape:
                raise ValueError(
                    f'the gradient of "{key}" has shape {gradient.shape}; the '
                    f"variable has {self._to[key].shape}")
            checked[key] = gradient
        try:
            for i in reversed(range(len(self._names))):
                key = self._names[i]
                if key in checked:
                    np.copyto(self._to[key], checked[key],
                              casting="same_kind")
                    native.ready(i)
            native.finish(loss, self.batch_size if examples is None
                          else int(examples))
        except _native.Unwanted:
            return False
        except TypeError as error:
            raise ValueError(f"a gradient cannot be cast: {error}") from error
        return True

    def close(self):
        """Leaves the job, unless it has ended. Called at exit."""
        self._loop.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
