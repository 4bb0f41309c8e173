"""What workers of all frameworks share: the loop, waits, tables, properties."""

import contextlib
import difflib
import inspect
import operator
import warnings
import weakref

import numpy as np

from . import _errors, _native, _session, _signals

# Kinds of common/plan/variable_spec.h.
GIVEN = (9, 0.0, 0.0)
NO_TABLE = 0

# Of one pass: the sums over all passes of a job must fit into 64 bits.
_MOST_EXAMPLES = 2**31 - 1
# Indices are of 64 bits.
_MOST_OF_DATA = 2**63 - 1


def _integer(name, value, least, most):
    """Raises: TypeError: no integer; ValueError: it is out of bounds."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}; give an integer") from None
    if not least <= number <= most:
        raise ValueError(f"{name} is {number}; it must be {least} to {most}")
    return number


def described(name, shape, dtype, initial=None, drawn=GIVEN, cut=NO_TABLE,
              buffer=False):
    """A variable as the native module takes it."""
    return (name, [int(n) for n in shape], dtype, initial, drawn, cut, buffer)


def array(memory, dtype, shape):
    """The native module's memory as an array."""
    return np.asarray(memory).view(dtype).reshape(shape)


def check_options(worker, options):
    """TypeError: an option that neither the worker nor its session has."""
    known = {*inspect.signature(type(worker).__init__).parameters,
             *inspect.signature(_session.Loop.__init__).parameters}
    known -= {"self", "described", "options"}
    for option in sorted(set(options) - known):
        near = difflib.get_close_matches(option, sorted(known), 1)
        raise TypeError(f"Worker has no argument {option}"
                        + (f"; did you mean {near[0]}?" if near else
                           "; it has " + ", ".join(sorted(known))))


def integers(ids, what):
    """Returns numbers of rows as int64; ValueError: they are no integers."""
    given = np.asarray(ids)
    # An empty list is float64 to numpy, and is no mistake.
    if given.size and given.dtype.kind not in "iu":
        raise ValueError(f"{what} are {given.dtype}; they must be integers "
                         "below 2**63")
    # An unsigned one of 2**63 or more becomes negative, which no row has.
    return given.astype(np.int64)


class TableRows:
    """The rows of one table that a worker has at hand.

    A row that the step at hand lacks is pulled when it is asked for. Rows are
    chosen ahead for the next step by ``ahead``.
    """

    def __init__(self, variable, name, rows, width, grows, dtype=np.float32):
        self.variable = variable
        self.name = name
        self.rows = rows  # of a growing table, the limit
        self.width = tuple(width)
        self.grows = grows
        self.dtype = np.dtype(dtype)
        self.ahead = None
        self.begin()

    def begin(self, ids=None, values=None):
        """A step begins, with the rows that were chosen ahead."""
        # Ascending, each once: the searches below rely on it.
        self.ids = np.empty(0, np.int64) if ids is None else ids
        self.values = (np.empty((0,) + self.width, self.dtype)
                       if values is None else values)
        self.gradients = []  # (ascending ids, array)

    def integers(self, ids):
        """Returns ids of any shape as int64; ValueError: they are no integers."""
        return integers(ids, f'ids of table "{self.name}"')

    def check(self, ids):
        """Returns the ids ascending, each once; ValueError: one cannot be."""
        ids = np.unique(self.integers(ids))
        if len(ids) and (ids[0] < 0 or
                         (not self.grows and ids[-1] >= self.rows)):
            wrong = ids[0] if ids[0] < 0 else ids[-1]
            raise ValueError(
                f'table "{self.name}" has no row {wrong}; rows are '
                + ("0 and above" if self.grows else f"0 to {self.rows - 1}"))
        return ids

    def choose_again(self, native):
        """The step is at hand again: a pull must follow, and take()."""
        native.choose_rows(self.variable, self.ids.tolist())

    def choose_ahead(self, native):
        ids = np.empty(0, np.int64) if self.ahead is None else self.ahead
        self.ahead = None
        native.choose_rows(self.variable, ids.tolist())
        self.ids = ids

    def take(self, native):
        """The chosen rows are there: copies them."""
        self.begin(self.ids, self._values(native, len(self.ids)))

    def _values(self, native, count):
        return array(native.row_values(self.variable), self.dtype,
                     (count,) + self.width)

    def lookup(self, native, ids):
        """Returns the values of ``ids``, which are ascending, each once."""
        missing = np.setdiff1d(ids, self.ids, assume_unique=True)
        if len(missing):
            # A choice replaces the one before, and moves the values of all its
            # rows.
            chosen = np.union1d(self.ids, ids)
            native.choose_rows(self.variable, chosen.tolist())
            native.pull_rows()
            self.ids = chosen
            self.values = self._values(native, len(chosen))
        if self.values is None:  # the rows were narrowed, and pulled again
            self.values = self._values(native, len(self.ids))
        return self.values[np.searchsorted(self.ids, ids)]

    def add(self, ids, gradient):
        """Adds a gradient of rows; ``ids`` ascending, each once."""
        self.gradients.append((ids, gradient))

    def touched(self):
        ids = [ids for ids, _ in self.gradients]
        return np.unique(np.concatenate(ids)) if ids else np.empty(0, np.int64)

    def narrow(self, native, ids):
        """Makes ``ids`` all the rows of the step; true if a pull must follow."""
        if np.array_equal(ids, self.ids):
            return False
        native.choose_rows(self.variable, ids.tolist())
        self.ids = ids
        self.values = None
        return True

    def hand_in(self, native):
        if len(self.ids) == 0:
            return  # the pass has no gradient of this table
        total = np.zeros((len(self.ids),) + self.width, self.dtype)
        for ids, gradient in self.gradients:
            # numpy adds once for each place: `ids` have each row once.
            total[np.searchsorted(self.ids, ids)] += gradient
        native.set_row_gradients(self.variable,
                                 total.reshape(-1).view(np.uint8))
        native.ready(self.variable)


def narrow(native, tables, touched):
    """Leaves only touched rows: the others must not count as pushed."""
    # A list, because any() ends at the first true one of a generator, and the
    # tables behind it would keep their rows.
    if any([table.narrow(native, ids) for table, ids in zip(tables, touched)]):
        native.pull_rows()


class BaseStep:
    """What the steps of all workers have."""

    def __init__(self, worker, number, share, replica, batch, seed):
        # A worker holds its step: a cycle would keep it in the job until the
        # garbage is collected.
        self._worker_if_there = weakref.ref(worker)
        self._batch = batch
        self.number = number
        self.share = share
        self.replica = replica
        self.seed = seed

    @property
    def _worker(self):
        worker = self._worker_if_there()
        if worker is None:
            raise RuntimeError(f"step {self.number} is over: its worker is "
                               "gone; keep the Worker in a variable")
        return worker

    def _indices(self, n, ahead=0):
        self._check_at_hand()
        n = _integer("n", n, 0, _MOST_OF_DATA)
        ahead = _integer("ahead", ahead, 0, 1)
        try:
            return self._worker._examples(n, self._batch + ahead)
        except _native.EndOfInput:
            # The body of the loop goes on to its end, in vain.
            if ahead == 0:
                self._worker._loop.native.end_input()
            return self._worker._examples(n, 0)

    def _check_at_hand(self):
        if self._worker._at_hand is not self:
            raise RuntimeError(
                f"step {self.number} is over; use the step that the loop over "
                "worker.steps() is at")

    def _count(self, examples):
        if examples is None:
            return self._worker.batch_size
        return _integer("examples", examples, 0, _MOST_EXAMPLES)

    def report(self, **figures):
        """Reports figures of this pass, for the job's status.

        Args:
          figures: names and finite numbers; at most 16 names in a job.

        Raises:
          TypeError: a figure that is no number.
          ValueError: a name or a number that is not possible.
        """
        self._check_at_hand()
        for name, value in figures.items():
            self._worker._loop.native.report(
                name, _session.number(f'figure "{name}"', value))

    @contextlib.contextmanager
    def reading(self):
        """Marks the time in which the pass waits for its data.

        ``lockstep explain`` and ``lockstep trace`` then tell it from computing:

            with step.reading():
                batch = next(loader)
        """
        native = self._worker._loop.native
        native.begin_reading()
        try:
            yield
        finally:
            native.end_reading()


class BaseWorker:
    """Joins, waits for steps, leaves. Subclasses hold values and gradients.

    They define ``_step_class``, ``_adopt(native)``, called when values have
    moved to other memory; ``_begin(native, again)``, called before each step;
    ``again``: an exception may have ended an earlier call for it; and
    ``_take_last(native, again)``, called when the job is done; ``again``: the
    step at hand has begun with the values of the end, and the result is false
    if the program has changed them since, so that they are lost. A subclass with
    ``_forget_gradients()`` may have some that no step has asked for.
    """

    _tables = ()
    _at_hand = None
    # The step at hand began before its values had arrived, which settle() ends;
    # _asked: a call of settle() has begun.
    _early = _asked = False
    _job = None  # as the native module describes it, once this worker has joined

    def _join(self, variables, name, options):
        self._membership = None
        self._loop = _session.Loop(variables, name, **options)
        weakref.finalize(self, _session.leave_soon, self._loop).atexit = False
        try:
            self._pending = self._wait()
        except BaseException as error:
            # The program gets no worker that it could close.
            self._loop.close(_errors.fault(error))
            raise

    def _wait(self, again=False):
        """Waits for the next step.

        Args:
          again: the step at hand comes again, if nothing of it was handed in.
        """
        native = self._loop.native
        try:
            repeated = native.step_again() if again else None
            if repeated and self._tables:
                # Rows may have been chosen since, and not have been pulled.
                for table in self._tables:
                    table.choose_again(native)
                native.pull_rows()
            number, share, replica, batch, seed, membership, early = (
                repeated or self._loop.wait(self._choose))
        except _session.Unwanted:
            return self._wait()  # while its rows were pulled
        except _session.JobEnded:
            if self._job is None:
                # Level 4 is the program's line that makes the Worker.
                warnings.warn(
                    "the job was done before this worker joined: there are no "
                    "steps, and the model keeps its own values; "
                    "lockstep.torch.load and lockstep.checkpoint.read read "
                    "those of a checkpoint", RuntimeWarning, stacklevel=4)
            else:
                self._end()
            return None
        # The session has joined again, and its values are in other memory.
        if membership != self._membership:
            self._job = native.job()
            self._adopt(native)
            self._membership = membership
        for table in self._tables:
            table.take(native)
        self._early, self._asked = early, self._asked and bool(repeated)
        self._begin(native, bool(repeated))
        return self._step_class(self, number, share, replica, batch, seed)

    def _end(self):
        """The job is done: the program goes on with the values of its end."""
        native = self._loop.native
        early, self._early = self._early, False
        step = self._at_hand
        if native.last_step() is not None:
            # It may have joined again since the last step.
            self._job = native.job()
            self._adopt(native)
            self._take_last(native, False)
        # False: the job has not ended during a pass that counts in no step.
        elif not (step is not None and step.number == self.train_steps
                  and not early and self._take_last(native, True)):
            # Level 5 is the program's loop.
            warnings.warn(
                "the job was done before its last values had arrived here, so "
                "this worker has those of an earlier step or of its own; "
                "lockstep.torch.load and lockstep.checkpoint.read read the last "
                "checkpoint", RuntimeWarning, stacklevel=5)

    def _await(self, first, count):
        """Waits for values of the step at hand. Unwanted: it is dropped."""
        if self._asked:  # and an exception has ended the wait
            self._settle()
        elif self._early:
            self._loop.native.await_values(first, count)

    def _settle(self):
        """Waits until gradients may be written. Unwanted: the step is dropped."""
        if self._early:
            self._asked = True
            _signals.wait(self._poll)

    def _poll(self):
        # Ctrl-C ends this loop in the main thread. For a GPU it is in autograd's
        # thread, while the main one waits, so the wait as a whole must be one
        # that _signals knows of.
        while self._early:
            self._early = not self._loop.native.begin_gradients(_session.WAIT)

    def _choose(self, _step):
        for table in self._tables:
            table.choose_ahead(self._loop.native)

    def _examples(self, n, batch):
        return np.asarray(self._loop.native.examples(operator.index(n), batch)).view(
            np.int64)

    def _after(self, step, again=False):
        """The body of a step has ended; ``again``: or was left before."""

    def _forget_gradients(self):
        """The first step of a loop begins."""

    def _described(self, place):
        if self._job is None:
            raise RuntimeError("the job was done before this worker joined, so "
                               "that nothing is known of it")
        return self._job[place]

    @property
    def name(self):
        """The job's name."""
        return self._described(0)

    @property
    def batch_size(self):
        """Examples per pass."""
        return self._described(2)

    @property
    def train_steps(self):
        """The step that ends training."""
        return self._described(3)

    @property
    def index(self):
        """The index of this worker."""
        return self._described(4)

    @property
    def num_workers(self):
        """How many workers share the data."""
        return self._described(5)

    @property
    def replicas(self):
        """How many replicas each worker computes, one after the other."""
        return self._described(6)

    def _passes_per_step(self):
        """Above 1: the values of a step may be read more than once."""
        return self._described(7)

    def steps(self):
        """Yields a Step for each pass, until the job or its input ends.

        A loop that was left, by an exception too, goes on with the next loop
        over steps(): with the same step if none of its gradients was handed in.
        After the loop the values are those with which the job has ended.

        Raises:
          JobFailed, JobStopped, Refused: with the chief's reason.
          RuntimeError: a step whose gradients were not handed in; this worker
            was closed.
        """
        if self._pending is None and self._at_hand is not None:
            # From the step in which an earlier loop was left.
            self._go_on(again=True)
        # Of passes between the making of the worker and this loop.
        self._forget_gradients()
        while self._pending is not None:
            # In this order: an exception between the two loses no step.
            step = self._at_hand = self._pending
            self._pending = None
            yield step
            if self._at_hand is not step:
                raise RuntimeError("a later loop over the steps has gone on")
            self._go_on()

    def _go_on(self, again=False):
        self._after(self._at_hand, again)
        self._pending = self._wait(again)
        if self._pending is None:
            self._at_hand = None

    def close(self):
        """Leaves the job, unless it has ended. Called at exit.

        It tells the chief, and waits up to two seconds for a chief that does not
        answer; Ctrl-C does not end this wait. A process that hosts the job's
        chief or mirror stops the job first, which takes as long as its
        checkpoint; one that hosts a mirror alone leaves a job with elastic
        workers, which goes on.
        """
        self._loop.close()

    def __enter__(self):
        return self

    def __exit__(self, *raised):
        self._loop.close(_errors.fault(raised[1]))
