"""Small jobs under a strategy, with TensorFlow's version 1 optimizers.

A scenario trains one model for a few steps. After each of them the variables,
the slots and the scalars of the optimizer are recorded, which are the same on
every copy of every worker.
"""

import tensorflow as tf

from record_strategies.forms import Values, leaf, leaf_form
from record_strategies.made_training import TOPOLOGIES, scenarios
from record_strategies.team import joined as joined_entries
from record_strategies.training_models import MODELS

v1 = tf.compat.v1


class Executor:
    """Trains the model of one scenario in one worker."""

    def __init__(self, strategy, topology, worker, scenario):
        self.strategy = strategy
        self.values = Values(strategy, topology, worker)
        self.model = MODELS[scenario["model"]]
        self.batch = tf.constant(scenario["global_batch"], scenario["dtype"])
        with strategy.scope():
            self.variables = [
                tf.Variable(leaf(form["initial"]), name=form["name"])
                for form in scenario["variables"]]
            asked = scenario["optimizer"]
            self.optimizer = getattr(v1.train, asked["name"] + "Optimizer")(
                **asked["hyper"])
        self.run = self._run
        if scenario["graph"]:
            self.run = tf.function(self._run)

    def _run(self, features, targets):
        return self.strategy.run(self._step, (features, targets))

    def _step(self, features, targets):
        loss, gradients = self.model(self.variables, features, targets,
                                     self.batch)
        self.optimizer.apply_gradients(list(zip(gradients, self.variables)))
        return loss, gradients

    def execute(self, op):
        loss, gradients = self.run(self.values.into(op["features"]),
                                   self.values.into(op["targets"]))
        total = self.strategy.reduce("SUM", loss, axis=None)
        return {"result": {"loss": self._components(loss),
                           "total_loss": leaf_form(total),
                           "gradients": [self._components(gradient)
                                         for gradient in gradients]},
                "state": self._state()}

    def after(self, op):
        return {}  # no step is refused

    def _components(self, value):
        return [leaf_form(x)
                for x in self.strategy.experimental_local_results(value)]

    def _state(self):
        optimizer = self.optimizer
        state = {
            "variables": [self._copy(variable) for variable in self.variables],
            "slots": [{key: self._copy(optimizer.get_slot(variable, key))
                       for key in optimizer.get_slot_names()}
                      for variable in self.variables]}
        if isinstance(optimizer, v1.train.AdamOptimizer):
            powers = optimizer._get_beta_accumulators()
            state["scalars"] = {key: self._copy(power) for key, power in
                                zip(["beta1_power", "beta2_power"], powers)}
        return state

    def _copy(self, variable):
        """The value of a variable; its local copies must be equal."""
        first, *others = [leaf_form(copy)
                          for copy in self.values.local(variable)]
        if any(other != first for other in others):
            raise RuntimeError("copies of %s differ" % variable.name)
        return first


def joined(op, answers, topology):
    """The fields of the trace; what a step leaves is equal in all workers."""
    first = answers[0]
    for answer in answers:
        if answer["status"] != "OK" or answer["state"] != first["state"]:
            raise RuntimeError("a step has failed, or its state differs: %s" %
                               [answer.get("text") for answer in answers])
    return {"status": "OK",
            "result": joined_entries(answer["result"] for answer in answers),
            "state": first["state"]}


__all__ = ["Executor", "TOPOLOGIES", "joined", "scenarios"]
