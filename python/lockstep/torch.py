"""Workers whose variables are the parameters of a PyTorch model.

    worker = lockstep.torch.Worker(model)
    for step in worker.steps():
        rows = step.indices(len(data))
        loss = F.cross_entropy(model(x[rows]), y[rows])
        step.backward(loss)
"""

import torch

from . import _native, _session, checkpoint

_DTYPES = {
    torch.float16: "float16",
    torch.float32: "float32",
    torch.float64: "float64",
    torch.bfloat16: "bfloat16",
}


class Step:
    """One pass of a worker: the gradient of one share of one step.

    Attributes:
      number: committed steps; the pass computes the next one.
      share: 0, unless there are fewer workers than gradients in a step.
      seed: for torch.manual_seed; the same if the pass is computed again.
    """

    def __init__(self, worker, number, share, batch, seed):
        self._worker = worker
        self._batch = batch
        self.number = number
        self.share = share
        self.seed = seed
        self._calls = 0
        self._loss = 0.0
        self._examples = None
        self._over = False

    def indices(self, n):
        """Returns this pass's examples of a data set of ``n``.

        A function of the job's seed, the step and the share: a pass that is
        computed again gets the same ones.

        Returns: int64 tensor, shape (batch_size,), elements in [0, n).
        Raises: ValueError: too few examples for a batch of each worker.
        """
        rows = self._worker._loop.native.examples(int(n), self._batch)
        return torch.from_numpy(rows)

    def backward(self, loss, examples=None):
        """Computes gradients of ``loss``, the mean over this pass's examples.

        They are sent while the backward pass goes on, layer by layer. Several
        calls in one step add up; sending then begins with the last, whose
        number is learned from the step before.

        Args:
          loss: scalar tensor.
          examples: how many it is the mean of; default the job's batch_size.

        Raises:
          RuntimeError: more calls than in the steps before, after the gradients
            were sent.
        """
        worker = self._worker
        if self._over:
            if worker._unwanted:
                return
            raise RuntimeError(
                f"backward was called {self._calls + 1} times in step "
                f"{self.number}, and {worker._calls} times in each step before;"
                " call it equally often in each step, or use loss.backward() "
                "and one step.push()")
        self._calls += 1
        self._examples = examples
        worker._sending = self._calls == worker._calls
        try:
            loss.backward()
            self._loss += float(loss.detach())
            if worker._sending:
                self._finish()
        except _session.Unwanted:
            worker._unwanted = self._over = True
        finally:
            worker._sending = False

    def push(self, loss=0.0, examples=None):
        """Hands in the gradients that ``loss.backward()`` has left in ``.grad``.

        Args:
          loss: mean loss over ``examples``, for the status.
          examples: how many; default the job's batch_size.
        """
        if self._over:
            raise RuntimeError(
                f"the gradients of step {self.number} were handed in before")
        self._loss = float(loss)
        self._examples = examples
        self._calls = 0
        self._finish_quietly()

    def _finish_quietly(self):
        try:
            self._finish()
        except _session.Unwanted:
            self._worker._unwanted = self._over = True

    def _finish(self):
        self._over = True
        examples = self._examples
        self._worker._finish(
            self._loss, self._worker.batch_size if examples is None
            else int(examples))


class Worker:
    """Makes this process a worker that trains ``model``.

    All parameters that require gradients are variables of the job; the others
    are neither sent nor changed. Tied parameters are one variable. The values
    of the first worker become the job's; when this returns, ``model`` has them.
    At the start of each step the parameters are those of that step.

    Args:
      model: torch.nn.Module with float32, float16, bfloat16 or float64
        parameters, on the CPU or on a GPU.
      buffers: "local": each worker keeps its own buffers, such as BatchNorm's
        running means.
      name: the job's name, to refuse another one; None: any.
      tf_config, tls_dir, shared_memory: as lockstep.Worker.

    Raises:
      ValueError: a model without trainable parameters, a dtype that cannot be
        trained, or a TF_CONFIG that cannot be; the message has the fix.
      RuntimeError: this process is a worker already.
      JobFailed, JobStopped, Refused: with the chief's reason.
    """

    def __init__(self, model, buffers="local", name=None, **options):
        if buffers != "local":
            raise ValueError(
                f'buffers is "{buffers}"; it must be "local": each worker keeps '
                "its own")
        named = [(key, p) for key, p in model.named_parameters()
                 if p.requires_grad]
        if not named:
            raise ValueError("the model has no parameter that requires a "
                             "gradient; there is nothing to train")
        self._parameters = [p for _, p in named]
        described = []
        for key, p in named:
            if p.dtype not in _DTYPES:
                raise ValueError(
                    f'parameter "{key}" is of {p.dtype}; it must be float32, '
                    "float16, bfloat16 or float64")
            start = p.detach().to("cpu", copy=True).contiguous()
            described.append((key, list(p.shape), _DTYPES[p.dtype],
                              start.reshape(-1).view(torch.uint8).numpy()
                              if p.dim() else _bytes(start), 0))
        self._calls = 0  # of backward in each step; 0: not known yet
        self._sending = False
        self._unwanted = False
        self._membership = None
        self._hooks = self._add_hooks()
        self._loop = _session.Loop(described, name, **options)
        self._pending = self._wait()

    def _add_hooks(self):
        # The node that adds to .grad runs its hooks once a parameter's gradient
        # is complete, also where a parameter is used more than once.
        nodes = []
        for i, p in enumerate(self._parameters):
            with torch.enable_grad():
                node = p.expand_as(p).grad_fn.next_functions[0][0]
            node.register_hook(lambda *_, i=i: self._on_gradient(i))
            nodes.append(node)  # PyTorch forgets a node that nobody holds
        return nodes

    def _on_gradient(self, i):
        if self._sending:
            self._send(i)

    def _send(self, i):
        gradient = self._parameters[i].grad
        if gradient is None or self._sent[i]:
            return
        if gradient.is_sparse:
            gradient = gradient.to_dense()
        self._sent[i] = True
        self._gradients[i].copy_(gradient.detach())
        self._loop.native.ready(i)

    def _finish(self, loss, examples):
        for i in reversed(range(len(self._parameters))):
            self._send(i)
        self._loop.native.finish(loss, examples)

    def _wait(self):
        try:
            number, share, batch, seed, membership = self._loop.wait()
        except _session.JobEnded:
            return None
        native = self._loop.native
        if membership != self._membership:
            self._membership = membership
            self._job = native.job()
            self._values = [_view(native.value(i), p)
                            for i, p in enumerate(self._parameters)]
            self._gradients = [_view(native.gradient(i), p)
                               for i, p in enumerate(self._parameters)]
        self._sent = [False] * len(self._parameters)
        self._unwanted = False
        with torch.no_grad():
            for p, value in zip(self._parameters, self._values):
                p.copy_(value)
                p.grad = None
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
          RuntimeError: a step without gradients.
        """
        while self._pending is not None:
            step, self._pending = self._pending, None
            yield step
            if not step._over and step._calls > 0:
                step._finish_quietly()
            if step._calls > 0 and not self._unwanted:
                self._calls = step._calls
            self._pending = self._wait()

    def close(self):
        """Leaves the job, unless it has ended. Called at exit."""
        self._loop.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def _bytes(tensor):
    return tensor.reshape(1).view(torch.uint8).numpy()


def _view(memory, parameter):
    flat = torch.from_numpy(memory).view(parameter.dtype)
    return flat.view(parameter.shape)


def load(model, directory, step=None):
    """Copies a checkpoint's values into ``model``.

    Args:
      directory: the job's checkpoint.directory.
      step: which checkpoint; None: the newest.

    Returns: the step.
    Raises:
      FileNotFoundError: there is no such checkpoint.
      ValueError: a parameter is missing in it, or has another shape.
    """
    found, tensors = checkpoint.read(directory, step)
    with torch.no_grad():
        for key, p in model.named_parameters():
            if not p.requires_grad:
                continue
            if key not in tensors:
                raise ValueError(f'the checkpoint of step {found} has no "{key}"')
            kind, shape, memory = tensors[key]
            if tuple(shape) != tuple(p.shape):
                raise ValueError(
                    f'the checkpoint of step {found} has "{key}" with shape '
                    f"{tuple(shape)}; the model has {tuple(p.shape)}")
            dtype = {"F16": torch.float16, "F32": torch.float32,
                     "F64": torch.float64, "BF16": torch.bfloat16}[kind]
            flat = torch.from_numpy(memory.copy()).view(dtype)
            p.copy_(flat.view(p.shape))
    return found
