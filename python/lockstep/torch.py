"""Workers whose variables are the parameters of a PyTorch model.

    worker = lockstep.torch.Worker(model)
    for step in worker.steps():
        rows = step.indices(len(x))
        loss = F.cross_entropy(model(x[rows]), y[rows])
        step.backward(loss)
"""

import warnings
import weakref

import torch

from . import _base, _session
from ._torch_buffers import Buffers
from ._torch_copies import HostCopies
from ._torch_describe import check_model, describe, is_trained
from ._torch_early import add_hook
from ._torch_embedding import Embedding
from ._torch_evaluator import Evaluator
from ._torch_hooks import Hooks
from ._torch_leftovers import Leftovers
from ._torch_load import load, shared_buffers, table_name
from ._torch_places import Places, check_memory
from ._torch_sampler import Sampler
from ._torch_unsent import Watcher
from ._torch_values import Values, view

__all__ = ["Embedding", "Evaluator", "Sampler", "Step", "Worker", "load"]


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
      seed: for torch.manual_seed; the same if the pass is computed again.
    """

    def __init__(self, worker, *rest):
        super().__init__(worker, *rest)
        self._calls = 0
        self._loss = 0.0
        self._examples = None
        self._over = False
        self._failed = False  # a part of a gradient cannot be taken back
        self._left = None  # gradients of a call that may have been the last

    def indices(self, n, ahead=0):
        """Returns this pass's examples of a data set of ``n``.

        The examples depend only on the job's seed, the step, the share and the
        replica, so a pass that is computed again has the same ones. With
        ``data.epochs`` in the job, the loop over the steps ends after the last
        epoch.

        Args:
          ahead: 1 returns the examples of the pass that is expected to follow
            this one. After the last pass of the last epoch they may be any.

        Returns: int64 tensor, shape (batch_size,), elements in [0, n).
        Raises: ValueError: too few examples for a batch of each worker.
        """
        return torch.from_numpy(self._indices(n, ahead))

    def prefetch(self, ids, table=None):
        """Lets rows of an Embedding arrive with the values of the next step.

        Rows that were not prefetched are fetched when forward looks them up.

        Args:
          ids: int64 tensor, any shape, as ``Embedding.forward`` takes it.
          table: the Embedding; needed where the model has more than one.

        Raises:
          TypeError: ``ids`` is no tensor.
          ValueError: a row or a table that does not exist.
        """
        self._check_at_hand()
        tables = self._worker._embeddings
        if table is None and len(tables) == 1:
            table = tables[0]
        if not any(table is each for each in tables):
            raise ValueError(f"the model has {len(tables)} tables; give one of "
                             "them: prefetch(ids, table=model.embedding)")
        table._table.ahead = table._table.check(table._check(ids))

    def await_values(self):
        """Returns when all parameters have the values of this step.

        Needed only with ``early=True``, before parameters or buffers are read
        outside of the forward of their modules.
        """
        self._check_at_hand()
        worker = self._worker
        worker._arrive(range(len(worker._parameters)), True)

    def backward(self, loss, examples=None, gradient=None, retain_graph=None,
                 create_graph=False, last=None):
        """Computes gradients of ``loss``, the mean over this pass's examples.

        Gradients are sent while the backward pass goes on, the last layer's
        first. If a step calls backward several times, the gradients add up and
        are sent with the last call; the step before shows how many calls there
        are. If that number varies, all calls must pass ``last``. If the step's
        first call fails before a gradient was sent, it may be repeated.

        Args:
          loss: scalar tensor.
          examples: number of examples that ``loss`` is the mean of, for the
            status; no effect on training. Default the job's batch_size.
          gradient, retain_graph, create_graph: as ``Tensor.backward`` takes
            them: ``gradient`` is that of the loss itself, of its shape; default
            1. ``retain_graph=True``: a later call goes through the same graph.
          last: True: no call of this step follows. False: one may follow; if
            none does, the gradients are sent when the step's body ends. None:
            as in the step before.

        Raises:
          RuntimeError: the gradients were sent before, as in a step with more
            calls than the one before; the step is over; a gradient is completed
            twice in one backward pass; an earlier call has failed and left a
            part of a gradient; ``loss`` needs no gradient (raised by PyTorch).
          ValueError: ``loss`` is no scalar, or ``examples`` is not possible.
        """
        self._check_at_hand()
        worker = self._worker
        if not isinstance(loss, torch.Tensor):
            raise ValueError(
                f"the loss is a {type(loss).__name__}, but must be a tensor, "
                "from which the gradients come: leave out .item()")
        if loss.numel() != 1:
            raise ValueError(
                f"the loss has the shape {tuple(loss.shape)}, but must have "
                "one element, the mean over this pass's examples: add .mean()")
        self._check_whole()
        if self._over:
            if worker._unwanted:
                worker._watcher.fill()
                return
            raise RuntimeError(
                f"backward was called {self._calls + 1} times in step "
                f"{self.number}, and the gradients were handed in before the "
                "last of them; call it equally often in each step; or give "
                "each call last=False, and the step's last one last=True; or "
                "use loss.backward() and one step.push()")
        self._examples = self._count(examples)
        fresh = self._calls == 0 and not worker._has_gradients()
        self._calls += 1
        try:
            # Before PyTorch refuses a forked child, for a reason of its own.
            worker._loop.native.check_wanted()
            if last or (last is None and self._calls == worker._calls):
                worker._begin_sending()
            try:
                loss.backward(gradient, retain_graph=retain_graph,
                              create_graph=create_graph)
            except BaseException:
                # Hooks of other devices may run on.
                worker._hooks.end()
                worker._leftovers.drop()
                raise
            # From here on all of its threads are done.
            if worker._hooks.active:
                # Before the loss is asked for: that waits for the whole pass.
                worker._send_all()
            self._loss += float(loss.detach())
            sent = worker._hooks.active
            if sent:
                self._finish()
            self._left = worker._watcher.watch(sent, last, self.number)
        except _session.Unwanted:
            worker._drop()
            worker._watcher.fill()
        except BaseException:
            if fresh and not self._over and not any(worker._sent):
                self._calls = 0
                worker._clear_gradients()
            else:
                self._failed = True
            raise
        finally:
            worker._hooks.end()

    def _check_whole(self):
        if self._failed:
            raise RuntimeError(
                f"backward failed in step {self.number}, and has left a part of "
                "a gradient, which must not be trained on: let the error end "
                "the program; or, to repeat passes that fail, use "
                "loss.backward() and, once all gradients are whole, one "
                "step.push()")

    def push(self, loss=0.0, examples=None):
        """Hands in the gradients that ``loss.backward()`` has left in ``.grad``.

        Args:
          loss: mean loss over ``examples``, for the status.
          examples: number of examples, for the status; default the job's
            batch_size.

        Raises:
          TypeError: ``loss`` is no number, and no tensor of one element.
          RuntimeError: the gradients were handed in before; the step is over;
            backward() has failed in it and left a part of a gradient.
        """
        self._check_at_hand()
        self._check_whole()
        if self._over:
            if self._worker._unwanted:
                return
            raise RuntimeError(
                f"the gradients of step {self.number} were handed in before")
        if isinstance(loss, torch.Tensor):
            loss = loss.detach()
        self._loss = _session.number("loss", loss)
        self._examples = self._count(examples)
        self._calls = 0
        self._left = None  # the program may have changed them before
        self._finish_quietly()

    def _finish_quietly(self):
        try:
            self._worker._begin_sending()
            self._finish()
        except _session.Unwanted:
            self._worker._drop()
        finally:
            self._worker._hooks.end()

    def _finish(self):
        self._worker._begin_gradients()  # an exception hands nothing in
        self._over = True
        self._worker._finish(self._loss, self._count(self._examples))


class Worker(_base.BaseWorker):
    """Makes this process a worker that trains ``model``.

    All parameters that require gradients are variables of the job; the others
    are neither sent nor changed, and must stay frozen. Tied parameters are one
    variable. The values of the first worker become the job's; ``model`` has
    them when this returns. At the start of each step the parameters have the
    values of that step. Large parameters then lie in other memory than in the
    step before, unless another tensor, an array or another process shares their
    memory: a kept ``data_ptr()`` may point to the values of an earlier step.
    After the loop over steps() the model has the values of the job's end.

    Args:
      model: torch.nn.Module with float32, float16, bfloat16 or float64
        parameters, on the CPU or on a GPU; and with Embedding modules.
      buffers: "mean": all workers begin a step with the same floating-point
        buffers of the state_dict, such as BatchNorm's running averages: those
        of the step before, changed by the mean of the workers' changes. A
        module may replace a buffer by a tensor of its shape and dtype.
        "local": each worker keeps its own.
      name: the job's name, to refuse another one; None: any.
      early: true: a step may begin while the gradients of the one before are on
        their way, in a job without backups. A module's parameters then get their
        values when its forward is called, so that the first layers compute while
        those of the others arrive. A program that reads parameters elsewhere
        must call ``step.await_values()`` first, or they are those of the step
        before. No effect with Embedding modules.
      keep_gradients: false: ``step.backward`` and ``step.push`` leave ``.grad``
        None. The gradient of a layer then uses the memory of the gradient of
        the next layer again, which may still be in the processor's cache.
      tf_config, tls_dir, shared_memory, chief_wait, log_level, job, settings,
        state_dir, status_address: as lockstep.Worker.

    Raises:
      TypeError: ``model`` is no module, or an argument has another type.
      ValueError: the model has no trainable parameters, or a dtype that cannot
        be trained, or parameters that share memory; or TF_CONFIG is malformed.
        The message has the fix.
      RuntimeError: this process is a worker already; or it is a child that
        multiprocessing is still starting.
      JobFailed, JobStopped, Refused: with the chief's reason.
    """

    _step_class = Step

    def __init__(self, model, buffers="mean", name=None, keep_gradients=True,
                 **options):
        _base.check_options(self, options)
        if buffers not in ("mean", "local"):
            raise ValueError(f'buffers is "{buffers}"; it must be "mean" or '
                             '"local"')
        check_model(model)
        named = [(key, p) for key, p in model.named_parameters()
                 if is_trained(p)]
        tables = [(key, module) for key, module in model.named_modules()
                  if isinstance(module, Embedding)]
        if not named and not tables:
            raise ValueError("the model has no parameter with elements that "
                             "requires a gradient; there is nothing to train")
        shared = shared_buffers(model) if buffers == "mean" else []
        # Variables are sent from the last to the first: first what is final
        # last.
        self._embeddings = [module for _, module in tables]
        self._tables = [
            module._join(self, i, table_name(key))
            for i, (key, module) in enumerate(tables)]
        self._buffers = Buffers(model, shared, len(tables), buffers == "mean")
        self._parameters = [p for _, p in named]
        self._names = [key for key, _ in named]
        described = [module._described(table_name(key)) for key, module in tables]
        described += [describe("buffer", key, b, True) for key, b in shared]
        described += [describe("parameter", key, p, False) for key, p in named]
        check_memory(named, shared)
        self._places = Places(model)
        self._calls = 0  # of backward in each step; 0: not known yet
        self._keep_gradients = bool(keep_gradients)
        self._watcher = Watcher(self._names, self._parameters,
                                self._keep_gradients)
        self._unwanted = self._computes = False
        self._leftovers = Leftovers()
        self._sent = [True] * len(self._parameters)
        this = weakref.ref(self)
        self._copies = {
            device: HostCopies(device, lambda i: this()._hand_in(i))
            for device in {p.device for p in self._parameters}
            if device.type == "cuda"}
        self._values = Values(self._parameters, self._first())
        self._hooks = Hooks(self, self._parameters)
        if options.get("early"):
            add_hook(self, model, self._parameters,
                     [buffer for _, buffer in shared])
        self._join(described, name, options)

    def _warn_without_gradients(self):
        if any(self._sent) or any(len(each._touched())
                                  for each in self._embeddings):
            return
        warnings.warn(
            "no parameter has a gradient in this pass, which counts as zeros: "
            "call step.backward(loss), or loss.backward() before step.push()",
            RuntimeWarning, stacklevel=5)

    def _has_gradients(self):
        return any(p.grad is not None for p in self._parameters) or any(
            each._has_gradients() for each in self._embeddings)

    def _clear_gradients(self):
        for p in self._parameters:
            p.grad = None
        for each in self._embeddings:
            each._clear_gradients()

    def _forget_gradients(self):
        self._clear_gradients()
        for each in self._embeddings:
            each._forget_used()

    def _on_gradient(self, i):
        if self._sent[i]:
            raise RuntimeError(
                f'the gradient of "{self._names[i]}" was completed twice in one '
                "backward pass, as where two reentrant checkpoints of "
                "torch.utils.checkpoint use it; give them use_reentrant=False, "
                "or use loss.backward() and one step.push()")
        self._send(i)

    def _first(self):
        """The number of the first parameter among the variables."""
        return len(self._tables) + len(self._buffers)

    def _begin_sending(self):
        # Rows must be settled before the first gradient is handed in.
        _base.narrow(self._loop.native, self._tables,
                     [each._touched() for each in self._embeddings])
        self._hooks.begin()

    def _send(self, i):
        gradient = self._parameters[i].grad
        if gradient is None or self._sent[i]:
            return
        self._begin_gradients()
        if i in self._values.late:
            raise RuntimeError(
                f'parameter "{self._names[i]}" was used outside of its module\'s '
                "forward, before the values of this step had arrived: call "
                "step.await_values() first, or leave early=True out")
        gradient = self._places.as_sent(self._names[i], gradient)
        self._sent[i] = True
        if not self._keep_gradients:
            self._parameters[i].grad = None
        copies = self._copies.get(gradient.device)
        if copies is not None:
            copies.start(i, gradient, self._gradients[i])
            return
        self._gradients[i].copy_(gradient)
        self._hand_in(i)

    def _hand_in(self, i):
        self._loop.native.ready(self._first() + i)

    def _arrive(self, numbers, buffers):
        """Copies values of an early step, once they are there."""
        if self._loop.closed:
            return  # they do not come any more
        with self._hooks.alone:
            missing = [i for i in numbers if i in self._values.missing]
            try:
                if buffers and self._buffers.missing:
                    self._await(0, len(self._buffers))
                    self._buffers.arrive()
                for i in missing:
                    self._await(self._first() + i, 1)
                    self._values.arrive(self._loop.native, i)
            except _session.Unwanted:
                self._drop()

    def _drop(self):
        """Nobody needs the pass: its body goes on to its end, in vain."""
        self._values.missing.clear()
        self._early = self._buffers.missing = False
        self._unwanted = self._at_hand._over = True

    def _begin_gradients(self):
        """Must be called before a gradient is written where it is sent from."""
        self._settle()
        self._values.arrive_late(self._loop.native)
        self._buffers.arrive_late()

    def _send_all(self):
        for i in reversed(range(len(self._parameters))):
            self._send(i)
        for copies in self._copies.values():
            copies.settle()

    def _finish(self, loss, examples):
        # Without the lock of the hooks: backward() has returned, so that the
        # threads of all devices are done.
        self._send_all()
        native = self._loop.native
        self._warn_without_gradients()
        self._buffers.hand_in(native)
        for each in self._embeddings:
            each._hand_in(native)
        self._computes = False
        native.finish(loss, examples)

    def _adopt(self, native):
        self._buffers.adopt(native)
        first = self._first()
        # To look up rows in the midst of a pass pulls what has moved away.
        self._values.adopt(native, moves=self._passes_per_step() == 1
                           and not self._tables)
        # A program may have changed the dtype of a parameter since it joined.
        self._gradients = [view(native.gradient(first + i), like)
                           for i, like in enumerate(self._values.like)]

    def _begin(self, native, again):
        self._places.check()
        for copies in self._copies.values():
            copies.drop()
        self._sent = [False] * len(self._parameters)
        self._unwanted = False
        self._computes = True
        self._leftovers.begin()
        for each in self._embeddings:
            each._begin()
        self._values.begin(native, again, self._early)
        self._buffers.begin(self._early)

    def _take_last(self, native, again):
        self._places.check()
        self._buffers.begin()
        for each in self._embeddings:
            each._begin()
        return self._values.take_last(native, again)

    def _after(self, step, again=False):
        step._check_whole()
        self._values.warn_of_writes(self._names)
        if step._over and step._left is not None and not self._unwanted:
            step._left.check(step.number)
        # No call of backward() was known to be the last: in the first step, or
        # in one with fewer calls than the step before. Nothing was sent yet.
        # A body that was left may lack some: its step comes again.
        if not step._over and step._calls > 0 and not again:
            if step._left is not None:
                step._left.check(step.number)
            # The body has made all its calls, though the pass may be unwanted.
            self._calls = step._calls
            step._finish_quietly()
        self._computes = False
