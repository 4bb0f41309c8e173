"""Gradients that the rest of a step's body must leave as they are."""


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
