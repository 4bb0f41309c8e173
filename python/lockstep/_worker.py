"""Workers whose values and gradients are numpy arrays."""

import collections.abc
import weakref

import numpy as np

from . import _base, _session, _tables

_DTYPES = {
    np.dtype(np.float16): "float16",
    np.dtype(np.float32): "float32",
    np.dtype(np.float64): "float64",
}


def _array(what, value):
    """A value as an array; ValueError: its rows differ in length."""
    try:
        return np.asarray(value)
    except ValueError as error:
        raise ValueError(
            f"{what} cannot be an array: give rows of one length, as "
            f"[[1, 2], [3, 4]] has them ({error})") from None


class Rows:
    """A gradient of some rows: of a table, or of an array.

    The gradient of an array is sent whole, with zeros in the other rows. Of a
    table, only these rows are sent.

    Args:
      indices: integers, shape (n,). Values of a repeated row are added up.
      values: shape (n,) + the shape of one row.

    Raises: ValueError: the lengths differ, or the indices are no integers, such
      as a mask.
    """

    def __init__(self, indices, values):
        self.indices = _base.integers(indices, "indices of Rows")
        self.values = _array("values of Rows", values)
        if self.indices.ndim != 1:
            raise ValueError(
                f"Rows has indices of the shape {self.indices.shape}; they "
                "must be one-dimensional")
        if self.values.ndim == 0 or len(self.indices) != len(self.values):
            raise ValueError(
                f"Rows has {len(self.indices)} indices and values of the shape "
                f"{self.values.shape}; give one row for each index")

    def sums(self):
        """Returns (indices ascending, each once, and the sums of their rows)."""
        ids, inverse = np.unique(self.indices, return_inverse=True)
        # Many rows of a small type may have a sum that the type cannot hold.
        total = np.zeros((len(ids),) + self.values.shape[1:],
                         np.result_type(self.values.dtype, np.float32))
        # total[inverse] += values would add a row once that is there twice.
        np.add.at(total, inverse.reshape(-1), self.values)
        return ids, total


class Table(_tables.Described):
    """A variable of a worker that holds only the rows that a step uses.

    Args:
      rows: number of rows; or
      row_limit: largest number of rows. A row then has a key, any number from 0
        on, and is created when it is first looked up.
      dim: elements of a row, an integer or a shape.
      mean, std: of the normal distribution that servers draw values from.

    Raises:
      TypeError: sizes that are no integers.
      ValueError: sizes that are not possible.
    """

    def __init__(self, rows=None, dim=1, row_limit=None, mean=0.0, std=0.0):
        self._describe_as("a table", rows, row_limit,
                          np.atleast_1d(dim).tolist(), mean, std)


def _check_cast(key, dtype, target):
    if not np.can_cast(dtype, target, "same_kind"):
        raise ValueError(
            f'the gradient of "{key}" is of {dtype}, which cannot be cast to '
            f"{target}: convert it with astype")


class Step(_base.BaseStep):
    """One pass of a replica: the gradient of one share of one step.

    Attributes:
      number: committed steps; the pass computes the next one.
      share: 0, unless there are fewer workers than gradients in a step; with
        ``work: SHARED`` the number of the micro-batch, which any worker may
        compute.
      replica: with ``strategy.replicas_per_worker`` above 1 the loop has one
        pass after the other for each replica of this worker, on the same
        values; the mean of their gradients is pushed. Otherwise 0.
      seed: for random numbers; the same if the pass is computed again.
      values: mapping from name to array, read-only, of this step; tables are
        not in it. The arrays are overwritten when the next step begins. A worker
        with ``early=True`` waits for an array when it is first read.
    """

    def __init__(self, worker, *rest):
        super().__init__(worker, *rest)
        # A copy: a program may replace the arrays of the dict.
        self.values = (dict(worker._values) if worker._arriving is None
                       else worker._arriving)

    def indices(self, n, ahead=0):
        """Returns this pass's examples of a data set of ``n``.

        The examples depend only on the job's seed, the step, the share and the
        replica, so a pass that is computed again has the same ones. With
        ``data.epochs`` in the job, the loop over the steps ends after the last
        epoch.

        Args:
          ahead: 1 returns the examples of the pass that is expected to follow
            this one. After the last pass of the last epoch they may be any.

        Returns: int64 array, shape (batch_size,), elements in [0, n).
        Raises: ValueError: too few examples for a batch of each worker.
        """
        return self._indices(n, ahead)

    def rows(self, name, ids):
        """Looks up rows of a table.

        Args:
          ids: int64, any shape.

        Returns: float32 array, shape of ``ids`` + the shape of a row. Zeros if
          the pass is not needed any more.
        Raises: ValueError: the table or a row does not exist.
        """
        self._check_at_hand()
        return self._worker._lookup(name, ids)

    def prefetch(self, ids, table=None):
        """Lets rows arrive with the values of the next step.

        Rows that were not prefetched are fetched when they are looked up.

        Args:
          ids: int64, any shape.
          table: its name; needed if the worker has more than one table.
        """
        self._check_at_hand()
        rows = self._worker._table(table)
        rows.ahead = rows.check(ids)

    def push(self, gradients, loss=0.0, examples=None):
        """Hands in the gradients of the mean loss over this pass's examples.

        Args:
          gradients: dict from name to array of the variable's shape, or Rows;
            names that are missing, or None, count as zeros in the mean, and a
            variable of which no worker of the step has a gradient stays as it
            is. A table takes Rows alone.
          loss: mean loss, for the status; no effect on training.
          examples: number of examples, as ``loss``; default the job's
            batch_size.

        Returns: False if the pass was not needed any more.
        Raises: nothing was handed in then.
          TypeError: ``gradients`` is no dict, or ``loss`` no number.
          ValueError: an unknown name, another shape, or a dtype that cannot be
            cast to the variable's.
        """
        self._check_at_hand()
        return self._worker._push(gradients, _session.number("loss", loss),
                                  self._count(examples))


class _Arriving(collections.abc.Mapping):
    """The values of an early step: an array is awaited when it is read."""

    def __init__(self, worker):
        # A cycle would keep the worker in its job until garbage is collected.
        self._worker = weakref.ref(worker)
        self._missing = set(worker._values)
        self.over = False

    def __getitem__(self, key):
        worker = self._worker()
        if worker is None:
            raise RuntimeError("the step is over: its worker is gone; keep the "
                               "Worker in a variable")
        # One that is read after the end of its step is that of a later one.
        if (key in self._missing and worker._arriving is self
                and not self.over):
            worker._arrive(key)
            self._missing.discard(key)
        return worker._values[key]

    def __iter__(self):
        return iter(self._worker()._values)

    def __len__(self):
        return len(self._worker()._values)

    def finish(self):
        """Copies what was not read, before gradients are handed in."""
        for key in list(self._missing):
            self[key]


class Worker(_base.BaseWorker):
    """A worker of the job that TF_CONFIG names, for any framework.

    Args:
      variables: dict from name to array: float16, float32 or float64, of any
        shape without zeros; or to Table. The first worker's arrays become the
        job's.
      name: the job's name, to refuse another one; None: any.
      tf_config: a file, in place of the environment variable.
      tls_dir: certificates, as the flag --tls_dir; default
        ``LOCKSTEP_TLS_DIR``.
      shared_memory: with servers of this host.
      chief_wait: seconds in which the chief must let this worker in; default
        600; 0: no limit.
      log_level: "debug", "info", "warning" or "error"; of lines on standard
        error. Default ``LOCKSTEP_LOG_LEVEL``, or "warning".
      job: the job file, where the cluster has no ``chief`` task and this worker
        has index 0, or is the ``chief`` of a cluster without ``ps``: its
        process then runs the job's chief, too. Default ``LOCKSTEP_JOB``.
      settings: "key=value" each, fields of the job, as ``lockstep run --set``.
      state_dir: where the cluster has no ``ps``, so that this process keeps a
        copy of the variables (``strategy.kind: MULTI_WORKER_MIRRORED``): a
        directory on a memory file system for it; default
        ``LOCKSTEP_STATE_DIR``, or /dev/shm/lockstep-UID.
      status_address: "host:port" at which such a process serves metrics, and
        the job's page where the chief is; default ``LOCKSTEP_STATUS_ADDRESS``.
      early: true: a step may begin while the gradients of the one before are on
        their way, in a job on parameter servers without backups. Reading
        ``step.values[name]`` then waits for that array alone, so that a program
        that reads them layer by layer computes while the others arrive. No
        effect with tables.

    Raises:
      JobFailed, JobStopped, Refused: with the chief's reason.
      TypeError: an argument of another type; the message has the fix.
      ValueError: impossible variables, or a malformed TF_CONFIG; the message
        has the field and the fix.
      RuntimeError: this process is a worker already; or it is a child that
        multiprocessing is still starting.
    """

    _step_class = Step

    def __init__(self, variables, name=None, **options):
        _base.check_options(self, options)
        if not isinstance(variables, collections.abc.Mapping):
            raise TypeError(
                f"variables is a {type(variables).__name__}; give a dict from "
                'name to array, as in {"w": array}')
        for key in variables:
            if not isinstance(key, str):
                raise ValueError(
                    f"the name of a variable is {key!r}; it must be a str")
        # Variables are sent from the last to the first: tables come first.
        self._names = sorted(
            variables, key=lambda key: not isinstance(variables[key], Table))
        self._index = {key: i for i, key in enumerate(self._names)}
        self._arrays = {}
        self._tables = []
        described = []
        for i, key in enumerate(self._names):
            if isinstance(variables[key], Table):
                described.append(variables[key]._described(key))
                self._tables.append(variables[key]._rows_at_hand(i, key))
            else:
                described.append(self._describe(key, variables[key]))
        self._by_name = {table.name: table for table in self._tables}
        self._values = {key: np.empty_like(array)
                        for key, array in self._arrays.items()}
        self._arriving = None
        self._join(described, name, options)

    def _describe(self, key, value):
        array = _array(f'variable "{key}"', value)
        # ascontiguousarray makes a scalar one-dimensional.
        array = np.ascontiguousarray(array).reshape(array.shape)
        if array.dtype == object:  # such as None, or a dict of arrays
            raise TypeError(f'variable "{key}" is a {type(value).__name__}; '
                            "give an array or a Table for each name")
        if array.dtype not in _DTYPES:
            raise ValueError(
                f'variable "{key}" is of {array.dtype}; it must be float16,'
                " float32 or float64: convert it with astype")
        self._arrays[key] = array
        return _base.described(key, array.shape, _DTYPES[array.dtype],
                               array if array.size else None)

    def _adopt(self, native):
        self._from, self._to = {}, {}
        for i, key in enumerate(self._names):
            if key not in self._arrays:
                continue
            like = self._arrays[key]
            self._from[key] = _base.array(native.value(i), like.dtype,
                                          like.shape)
            self._to[key] = _base.array(native.gradient(i), like.dtype,
                                        like.shape)

    def _begin(self, native, _again):
        self._arriving = _Arriving(self) if self._early else None
        if self._arriving is None:
            for key in self._values:
                self._copy(native, key)

    def _take_last(self, native, _again):
        self._arriving = None
        for key in self._values:
            self._copy(native, key)
        return True

    def _copy(self, native, key):
        array = self._values[key]
        # Values that arrive with an early step may be in other memory.
        value = (self._from[key] if self._arriving is None else
                 _base.array(native.value(self._index[key]), array.dtype,
                             array.shape))
        # Read-only for the program: writing to them would train nothing.
        array.setflags(write=True)
        np.copyto(array, value)
        array.setflags(write=False)

    def _arrive(self, key):
        """Copies the values of an early step, once they are there."""
        try:
            self._await(self._index[key], 1)
        except _session.Unwanted:
            self._early = False  # nothing of this pass counts any more
            self._arriving.over = True
        else:
            self._copy(self._loop.native, key)

    def _table(self, name):
        if name is None:
            if len(self._tables) == 1:
                return self._tables[0]
            if not self._tables:
                raise ValueError("the model has no table")
            raise ValueError(f"the model has {len(self._tables)} tables; give "
                             'the name of one of them: prefetch(ids, "name")')
        if name not in self._by_name:
            raise ValueError(f'there is no table "{name}"; the model has '
                             + (", ".join(self._by_name) or "none"))
        return self._by_name[name]

    def _lookup(self, name, ids):
        table = self._table(name)
        ids = table.integers(ids)
        unique, inverse = np.unique(ids, return_inverse=True)
        table.check(unique)
        try:
            rows = table.lookup(self._loop.native, unique)
        except _session.Unwanted:
            rows = np.zeros((len(unique),) + table.width, np.float32)
        # The inverse is flat in numpy 1, and has the shape of `ids` in numpy 2.
        return rows[inverse.reshape(-1)].reshape(ids.shape + table.width)

    def _check(self, key, gradient):
        """Returns the gradient as it can be copied, without side effects."""
        if key in self._by_name:
            if not isinstance(gradient, Rows):
                raise ValueError(
                    f'"{key}" is a table; its gradient must be '
                    "lockstep.Rows(indices, values)")
            table = self._by_name[key]
            _check_cast(key, gradient.values.dtype, table.dtype)
            ids, values = gradient.sums()
            table.check(ids)
            if values.shape[1:] != table.width:
                raise ValueError(
                    f'the gradient of "{key}" has rows of the shape '
                    f"{values.shape[1:]}; the table has {table.width}")
            return ids, values
        target = self._to[key]
        if isinstance(gradient, Rows):
            _check_cast(key, gradient.values.dtype, target.dtype)
            ids, values = gradient.sums()
            if target.ndim == 0 or values.shape[1:] != target.shape[1:]:
                raise ValueError(
                    f'the gradient of "{key}" has rows of the shape '
                    f"{values.shape[1:]}; the variable has {target.shape}")
            if len(ids) and (ids[0] < 0 or ids[-1] >= len(target)):
                raise ValueError(
                    f'the gradient of "{key}" has the rows {ids[0]} to '
                    f"{ids[-1]}; the variable has 0 to {len(target) - 1}")
            gradient = np.zeros_like(target)
            gradient[ids] = values
        gradient = _array(f'the gradient of "{key}"', gradient)
        if gradient.shape != target.shape:
            raise ValueError(
                f'the gradient of "{key}" has shape {gradient.shape}; the '
                f"variable has {target.shape}")
        _check_cast(key, gradient.dtype, target.dtype)
        return gradient

    def _push(self, gradients, loss, examples):
        if not isinstance(gradients, collections.abc.Mapping):
            raise TypeError(
                f"gradients is a {type(gradients).__name__}; give a dict from "
                'name to array, as in {"w": array}')
        unknown = [key for key in gradients if key not in self._names]
        if unknown:
            raise ValueError(f'there is no variable "{unknown[0]}"; the model '
                             f"has {', '.join(self._names)}")
        native = self._loop.native
        # All before the first is handed in: an error must leave the step as it
        # is.
        checked = {key: self._check(key, gradient)
                   for key, gradient in gradients.items()
                   if gradient is not None}
        if self._arriving is not None and self._arriving.over:
            return False
        try:
            native.check_wanted()
            self._settle()
            if self._arriving is not None:
                self._arriving.finish()
            self._push_checked(native, checked)
            native.finish(loss, examples)
        except _session.Unwanted:
            if self._arriving is not None:
                self._arriving.over = True
            return False
        return True

    def _push_checked(self, native, checked):
        for table in self._tables:
            table.gradients = []  # of a push that an exception has ended
            if table.name in checked:
                table.add(*checked[table.name])
        # The rows of a step cannot change after the first gradient.
        _base.narrow(native, self._tables,
                     [table.touched() for table in self._tables])
        # The order in which the session sends.
        for i in reversed(range(len(self._names))):
            key = self._names[i]
            if key in self._by_name:
                self._by_name[key].hand_in(native)
            elif key in checked:
                np.copyto(self._to[key], checked[key], casting="same_kind")
                native.ready(i)
