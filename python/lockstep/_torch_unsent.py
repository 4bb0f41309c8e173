"""Gradients that wait for the end of a step's body to be sent."""


class Unsent:
    """Finds out that a program changes gradients after step.backward().

    Where the number of calls is known, gradients are sent by the last one, so
    that a change after it has no effect. Where it is not, as in the first step,
    they wait, and the change would count in that step alone.

    Args:
      names, parameters: of the variables; their gradients are complete.
    """

    def __init__(self, names, parameters):
        self._names = names
        self._parameters = parameters
        self._before = self._now()

    def _now(self):
        """Each parameter's gradient or None, and how often it was changed."""
        return [(p.grad, None if p.grad is None else p.grad._version)
                for p in self._parameters]

    def check(self, number):
        """RuntimeError: the body of a step has changed or removed a gradient."""
        for name, (was, before), (now, after) in zip(self._names, self._before,
                                                     self._now()):
            if was is not now or before != after:
                raise RuntimeError(
                    f'the gradient of "{name}" was changed after '
                    f"step.backward() in step {number}, which sends gradients "
                    "as the backward pass leaves them: to clip or change them, "
                    "use loss.backward() and, after that, step.push(loss); "
                    "leave zero_grad() out")
