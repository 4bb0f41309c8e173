"""Gradients that the rest of a step's body must leave as they are."""

import torch


class Unsent:
    """Finds out that a program changes gradients after step.backward().

    Where the number of calls is known, gradients are sent by the last one, so
    that a change after it has no effect. Where it is not, as in the first step,
    they wait, and the change would count in that step alone.

    Args:
      names, parameters: of the variables; their gradients are complete.
      only: the numbers of those to look at; None: all.
    """

    def __init__(self, names, parameters, only=None):
        numbers = range(len(names)) if only is None else only
        self._watched = [(names[i], parameters[i]) for i in numbers]
        self._before = self._now()

    def _now(self):
        """Each parameter's gradient or None, and how often it was changed."""
        return [(p.grad, None if p.grad is None else p.grad._version)
                for _, p in self._watched]

    def _is_change(self, was, before, now, after):
        return was is not now or before != after

    def check(self, number):
        """RuntimeError: the body of a step has changed or removed a gradient."""
        for (name, _), (was, before), (now, after) in zip(
                self._watched, self._before, self._now()):
            if self._is_change(was, before, now, after):
                raise RuntimeError(
                    f'the gradient of "{name}" was changed after '
                    f"step.backward() in step {number}, which sends gradients "
                    "as the backward pass leaves them: to clip or change them, "
                    "use loss.backward() and, after that, step.push(loss); "
                    "leave zero_grad() out")


class Sent(Unsent):
    """As Unsent, for gradients that were sent: to free one is no change."""

    def _is_change(self, was, before, now, after):
        return now is not None and super()._is_change(was, before, now, after)


class Watcher:
    """Chooses the gradients of a step that the rest of its body must not change.

    Args:
      names, parameters: of the variables.
      kept: gradients stay in ``.grad`` when they are sent.
    """

    def __init__(self, names, parameters, kept):
        self._names = names
        self._parameters = parameters
        self._kept = kept
        self._steps = 0  # in which gradients were watched when sent

    def watch(self, sent, last, number):
        """An Unsent or None, after a backward pass of step ``number``.

        Args:
          sent: the gradients were sent.
          last: as ``step.backward`` takes it.
        """
        if not sent:
            return (None if last is False else
                    Unsent(self._names, self._parameters))
        if not self._kept:
            return None
        # All of them at first; later one in turn, which is enough to find what
        # clips or scales all.
        only = range(len(self._names))
        if self._steps >= 2 and self._names:
            only = [number % len(self._names)]
        self._steps += 1
        return Sent(self._names, self._parameters, only)

    def fill(self):
        """The rest of the body of a pass that is not needed may read them."""
        if not self._kept:
            return
        for p in self._parameters:
            if p.grad is None:
                p.grad = torch.zeros_like(p)
