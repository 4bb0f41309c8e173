"""Batches for a DataLoader whose worker processes fetch them ahead."""

import torch.utils.data

from . import _native


class Sampler:
    """A batch sampler of this worker's examples, in the order of its steps.

        sampler = lockstep.torch.Sampler(worker, dataset)
        loader = DataLoader(dataset, batch_sampler=sampler, num_workers=2)
        for step, (x, y) in sampler.steps(loader):
            step.backward(loss_of(model(x), y))

    The loader fetches the batches of the steps that are expected to follow. A
    step that comes otherwise, because the job went back or other workers were
    faster, gets its own batch, which this process then fetches.

    Args:
      worker: a Worker.
      dataset: with ``len`` and ``dataset[i]``; of all workers alike. What it
        draws by chance is not repeated where a pass is redone.

    Raises:
      TypeError: a data set without ``len`` or ``dataset[i]``.
      ValueError: too few examples for a batch of each worker.
    """

    # A loader that is behind by more is started anew.
    _MOST_SKIPPED = 64

    def __init__(self, worker, dataset):
        if (isinstance(dataset, torch.utils.data.IterableDataset)
                or not hasattr(dataset, "__len__")
                or not hasattr(dataset, "__getitem__")):
            raise TypeError(
                f"the dataset is a {type(dataset).__name__}; a Sampler needs "
                "one with len(dataset) and dataset[i]: take batches of an "
                "IterableDataset with next(batches) in the loop over "
                "worker.steps(), and give each worker's other examples, as by "
                "worker.index")
        self._worker = worker
        self._dataset = dataset
        self._first = worker._pending._batch if worker._pending else 0
        self._given = {}  # rows that the loader was given, by batch
        if worker._pending:
            # For its error, which would otherwise arise in the loader.
            self._end_input(self._first)

    def __iter__(self):
        """Yields lists of indices, from the expected batch on."""
        batch = self._first
        while True:
            rows = self._rows(batch)
            if rows is None:
                return  # the input is over, or the worker is closed
            self._given[batch] = rows
            yield rows
            batch += 1

    def _rows(self, batch):
        """This worker's examples of a batch now; None: the input is over."""
        try:
            return self._worker._examples(len(self._dataset), batch).tolist()
        except (_native.EndOfInput, RuntimeError):
            return None

    def _end_input(self, batch):
        """Ends the worker's part in the job if its input is over at a batch;
        true if so."""
        try:
            self._worker._examples(len(self._dataset), batch)
            return False
        except _native.EndOfInput:
            self._worker._loop.native.end_input()
            return True

    def steps(self, loader):
        """Yields (Step, batch) for each pass, until the job ends.

        Args:
          loader: a DataLoader with this ``batch_sampler``.

        Raises: as Worker.steps(); ValueError: a loader with another sampler,
          or with ``in_order=False``.
        """
        if getattr(loader, "batch_sampler", None) is not self:
            raise ValueError("give the loader this sampler: "
                             "DataLoader(dataset, batch_sampler=sampler)")
        # Batches are told apart by their order alone.
        if not getattr(loader, "in_order", True):
            raise ValueError("the loader has in_order=False, with which a step "
                             "would get the batch of another one; leave it out")
        batches, at = None, 0  # `at`: the batch that `batches` is at
        for step in self._worker.steps():
            wanted = step._batch
            # The loader may have been given examples of another share: the
            # workers of an elastic job change.
            anew = (batches is None or wanted > at + self._MOST_SKIPPED
                    or self._is_of_another_share(wanted))
            ended = False
            while True:
                if anew:
                    self._first = at = wanted
                    self._given.clear()
                    batches = iter(loader)
                try:
                    while at < wanted:
                        next(batches)
                        at += 1
                    if at == wanted:
                        batch = next(batches)
                        at += 1
                    else:
                        # The job went back: the loader stays where it is.
                        batch = self._fetch(loader, wanted)
                    break
                except StopIteration:
                    # The share that the loader was given may have had less.
                    ended = anew or self._rows(wanted) is None
                    if ended:
                        break
                    anew = True
            if ended:
                if not self._end_input(wanted):
                    return
                continue  # the loop over the worker's steps ends
            for old in [b for b in self._given if b < at]:
                del self._given[old]
            yield step, batch

    def _is_of_another_share(self, batch):
        given = self._given.get(batch)
        return given is not None and given != self._rows(batch)

    def _fetch(self, loader, batch):
        rows = self._worker._examples(len(self._dataset), batch)
        return loader.collate_fn([self._dataset[i] for i in rows.tolist()])
