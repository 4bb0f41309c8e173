"""Evaluators: programs that read checkpoints and report figures of them."""

import atexit
import math
import os
import weakref

from . import _errors, _native, _session, _signals, checkpoint

# The directory of the checkpoint to score, set by ``lockstep evaluate``.
_CHECKPOINT = "LOCKSTEP_CHECKPOINT"
_AVERAGED = "LOCKSTEP_AVERAGED"  # "no": the job's evaluator scores the values

# A file that the chief puts into the directory of checkpoints.
_MARK = ".owner"


class _Printer:
    """Takes the figures of a checkpoint that no job waits for."""

    def report(self, step, figures):
        if not figures:
            raise ValueError("report() takes 1 to 16 figures, got none")
        for name, value in figures:
            if not math.isfinite(value):
                raise ValueError(f"{name} is {value}; give a finite number")
        text = ", ".join(f"{name} {value:g}" for name, value in figures)
        print(f"step {step}: {text}", flush=True)

    def leave(self, reason):
        pass

    def request_stop(self):
        pass


class Checkpoint:
    """One checkpoint of the job.

    Attributes:
      step: the committed steps that led to it.
    """

    def __init__(self, evaluator, step, tensors):
        self._evaluator = evaluator
        self._tensors = tensors
        self._reported = False
        self._written = None  # as of _newest_in(); None: of no job
        self.step = step

    def values(self):
        """Returns the numpy arrays by name, read-only; bfloat16 as float32.

        As ``averaged`` of the Evaluator says, they are values or averages.
        """
        return {name: checkpoint.array(*tensor)
                for name, tensor in self._tensors.items()}

    def report(self, **figures):
        """Reports figures of this checkpoint to the job.

        The status line shows the first figure; the ``done:`` line has those of
        the last checkpoint, for which the job waits. No effect if the job is
        done, or has gone back behind this checkpoint.

        Args:
          figures: names and finite numbers, 1 to 16.

        Raises:
          TypeError: a figure that is no number.
          ValueError: a name or a number that is not possible.
          JobFailed, JobStopped, Refused: with the chief's reason.
        """
        named = [(name, _session.number(f'figure "{name}"', value))
                 for name, value in figures.items()]
        # Its step may have been written again: the figures would pass for those
        # of that checkpoint, which the loop has next.
        self._reported = (self._evaluator._is_lost(self._written)
                          or self._evaluator._report(self.step, named))


class Evaluator:
    """Makes this process the evaluator of the job that TF_CONFIG names.

    ``lockstep run --evaluator 'python3 eval.py'`` starts one. Under ``lockstep
    evaluate ... -- python3 eval.py`` there is no job to join: checkpoints() has
    the one checkpoint, and its figures are printed.

    Args:
      name: the job's name, to refuse another one; None: any.
      tf_config, tls_dir, log_level: as lockstep.Worker.
      averaged: true: checkpoints have the moving averages of variables of which
        the job keeps some, in place of the values. None: if there are any, and
        the job's ``moving_average.evaluate`` is true, its default.

    Raises:
      JobFailed, JobStopped, Refused: with the chief's reason.
      ValueError: TF_CONFIG is malformed, or its task is no evaluator.
    """

    _averaged = False  # as checkpoint.read() takes it

    def __init__(self, name=None, tf_config=None, tls_dir=None, log_level=None,
                 chief_wait=600.0, averaged=None):
        _session.check_process()
        self._only = os.environ.get(_CHECKPOINT)
        if self._only:
            self._native = _Printer()
            if averaged is not None or os.environ.get(_AVERAGED) != "no":
                self._averaged = averaged
            return
        tf_config, tls_dir, name, log_level, with_parent = _session.membership(
            name, tf_config, tls_dir, log_level)
        self._native = _native.Evaluation(
            tf_config, tls_dir, name, log_level,
            _session.seconds("chief_wait", chief_wait), with_parent)
        self._join()
        if averaged is not None or self._native.scores_averages():
            self._averaged = averaged
        # The job hears of the exception that ends the program, also if that has
        # nothing but the loop, which the exception ends first.
        native = self._native
        atexit.register(lambda: _leave(native, _errors.uncaught()))
        # Otherwise the job would wait for an evaluator that is gone.
        self._gone = weakref.finalize(self, _leave, native, None)
        self._gone.atexit = False

    def _join(self):
        _signals.watch(self, lambda this, *_: this._native.request_stop())
        try:
            code, message, exit_code = _signals.wait(self._native.join)
            if code != "OK":
                raise _session.exception_of(code, message, exit_code)
        except BaseException:
            # The program gets no evaluator that SIGTERM could stop.
            _signals.unwatch(self)
            raise

    def _open(self, step, tensors):
        return Checkpoint(self, step, tensors)

    def _is_lost(self, written):
        """True if the job has gone back behind a checkpoint."""
        if written is None:
            return False
        try:
            newest = _newest_in(self._native.job()[1])
        except (FileNotFoundError, checkpoint.Damaged):
            return False
        return (newest is not None and newest[0] <= written[0]
                and newest != written)

    def _report(self, step, figures):
        """Returns false if the job was done before."""
        for tries_again in (True, False):
            try:
                _signals.wait(self._native.report, step, figures)
                return True
            except RuntimeError:
                # Also where the job or this evaluator has ended. Or the chief
                # has given this task up, which then joins again.
                if not self._is_over(0):
                    if tries_again:
                        continue
                    raise
            _signals.unwatch(self)
            end = _session.exception_of(*self._native.end())
            if not isinstance(end, _session.JobEnded):
                raise end
            return False

    def _is_over(self, timeout):
        """Waits; returns true once the job has ended or this evaluator was
        stopped.

        Raises: JobFailed, Refused: the chief has given this task up, and has
          not let it in again.
        """
        try:
            return _signals.wait(self._native.wait, timeout)
        except (RuntimeError, ValueError):
            end = _session.exception_of(*self._native.end())
            if isinstance(end, _session.JobEnded):
                raise
        _signals.unwatch(self)
        raise end

    def checkpoints(self):
        """Yields the newest Checkpoint whenever there is a new one.

        Those that were replaced by newer ones meanwhile are left out; the last
        one is not, unless it is damaged, which the job hears. Ends when the job
        is done.

        Raises: JobFailed, JobStopped, Refused: with the chief's reason.
        """
        if self._only:
            directory, name = os.path.split(os.path.abspath(self._only))
            # The folder of a checkpoint is step-NUMBER.
            step = int(name.rpartition("-")[2])
            yield self._open(*checkpoint.read(directory, step, self._averaged))
            return
        _, directory = self._native.job()
        if not directory:
            self._native.leave("the job has no checkpoint.directory")
            raise ValueError("the job has no checkpoint.directory, so there is "
                             "nothing to evaluate; set it in the job file")
        last = None
        joins = self._native.joins()
        self._native.set_trouble("")
        try:
            # It joins again if the chief has given this task up.
            while not self._is_over(_session.WAIT):
                if joins != self._native.joins():
                    # A chief that was started again has not heard the figures
                    # of the newest checkpoint.
                    joins = self._native.joins()
                    last = None
                try:
                    newest, found = self._newest(directory, last)
                except checkpoint.Damaged as error:
                    # It may be whole later, as on a file system of a network.
                    self._native.set_trouble(str(error))
                    continue
                if found is not None:
                    last, at_hand = newest, found
                    # Of a checkpoint before: the job must wait for this one.
                    self._native.set_trouble("")
                    yield found
                elif last is None:
                    self._native.set_trouble(_errors.utf8(_unseen(directory)))
                elif not at_hand._reported:
                    # None is newer.
                    self._native.set_trouble("the program has reported no "
                                             f"figure of step {at_hand.step}")
        except GeneratorExit:
            # The program has left the loop. The job hears why when it ends.
            self._native.set_trouble(
                "the program has left the loop over the checkpoints")
            self._gone.detach()
            raise
        except BaseException as error:
            # Any error, since the job waits for figures of an evaluator.
            self._native.leave(_errors.reason_of(error))
            raise
        _signals.unwatch(self)
        end = _session.exception_of(*self._native.end())
        done = isinstance(end, _session.JobEnded)
        self._native.leave("" if done else str(end))
        if not done:
            raise end

    def _newest(self, directory, last):
        """Returns what tells the newest checkpoint from others, and the
        Checkpoint; None for it if it is ``last``, or there is none.

        If the job has gone back, an older step is newest, and a step may be
        written again.
        """
        newest = None
        try:
            newest = _newest_in(directory)
            if newest is None or newest == last:
                return newest, None
            found = self._open(*checkpoint.read(directory, newest[0],
                                                self._averaged))
        except FileNotFoundError:
            return None, None  # it was removed for a newer one
        except ValueError:
            # Its files are of two checkpoints if it was written again.
            if newest is None or not self._is_lost(newest):
                raise
            return None, None
        found._written = newest
        return newest, found

    def close(self):
        """Leaves the job. Called at exit."""
        _signals.unwatch(self)
        _leave(self._native, None)


def _newest_in(directory):
    """The newest checkpoint's step, and when it was written; None: there is
    none.

    Raises:
      FileNotFoundError: it was removed meanwhile; no such directory.
      checkpoint.Damaged: its manifest is.
    """
    steps = checkpoint.steps(directory)
    if not steps:
        return None
    return steps[-1], checkpoint.saved_at(directory, steps[-1])


def _unseen(directory):
    """Why this process cannot see the job's checkpoints; empty: it can."""
    # The chief marks its directory before it lets an evaluator in.
    if os.path.exists(os.path.join(directory, _MARK)):
        return ""
    return (f"there is no checkpoint in {os.path.abspath(directory)}, and it is "
            "not the directory that the chief has marked as the job's; set "
            "checkpoint.directory to an absolute path that the evaluator's "
            "host has, too")


def _leave(native, fault):
    native.leave("the evaluator has ended" if fault is None else
                 _errors.reason_of(fault))
