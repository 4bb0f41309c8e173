"""Traces of variables under a strategy: writes, reads, scatters and checkpoints
in every context, for each synchronization and aggregation."""

import contextlib
import os
import tempfile

import tensorflow as tf
from tensorflow.python.distribute import distribute_lib

from record_strategies import forms
from record_strategies.made_variables import TOPOLOGIES, scenarios
from record_strategies.variable_answers import joined

SAVED_KEY = "v/.ATTRIBUTES/VARIABLE_VALUE"
IN_REPLICA = ("replica", "replica_plus_one", "sync_on_read")


class Executor:
    """Executes the operations of one scenario in one worker."""

    def __init__(self, strategy, topology, worker, scenario):
        del scenario
        self.strategy = strategy
        self.values = forms.Values(strategy, topology, worker)

    def execute(self, op):
        answer = getattr(self, op["op"])(op)
        return {**answer, "state": self.state()}

    def after(self, op):
        """What a refused operation has left; a refused variable is not made."""
        return {} if op["op"] == "create" else {"state": self.state()}

    def state(self):
        """The numbers of every local copy of every variable."""
        return {name: [forms.leaf_form(copy)["data"]
                       for copy in self.values.local(variable)]
                for name, variable in self.values.variables.items()}

    def variable(self, op):
        return self.values.variables[op["variable"]]

    def across(self, context):
        """The context of a call across replicas, which may be no scope."""
        if context == "outside":
            return contextlib.nullcontext()
        return self.strategy.scope()

    def create(self, op):
        made = op["variable"]
        initial = made["initial"]
        if "per_worker" in initial:
            initial = initial["per_worker"][self.values.worker]
        with self.strategy.scope():
            variable = tf.Variable(
                forms.leaf(initial), name=made["name"],
                trainable=made.get("trainable"),
                synchronization=getattr(
                    tf.VariableSynchronization,
                    made.get("synchronization", "AUTO")),
                aggregation=getattr(tf.VariableAggregation,
                                    made.get("aggregation", "NONE")))
        self.values.variables[made["name"]] = variable
        return {"trainable": variable.trainable}

    def assign(self, op):
        variable = self.variable(op)
        value = self.values.into(op["value"])
        method, context = op["method"], op["context"]
        if context == "replica":
            return self.assign_in_replica(variable, method, value,
                                          op.get("graph"))
        if context == "merge":
            self.strategy.run(
                lambda: distribute_lib.get_replica_context().merge_call(
                    lambda _: getattr(variable, method)(value)))
        elif context in ("update", "update_whole"):
            self.strategy.extended.update(
                variable,
                lambda copy, x: getattr(
                    copy if context == "update" else variable, method)(x),
                args=(value,))
        else:
            with self.across(context):
                getattr(variable, method)(value)
        return {}

    def assign_in_replica(self, variable, method, value, graph):
        def write(x):
            getattr(variable, method)(x)
            return variable.read_value()

        def run(x):
            return self.strategy.run(write, args=(x,))

        return {"result": self.values.out(
            (tf.function(run) if graph else run)(value))}

    def read(self, op):
        variable = self.variable(op)
        context = op["context"]
        if context in IN_REPLICA:
            return {"result": self.values.out(self.strategy.run(
                lambda: self.read_in_replica(variable, context)))}
        if context == "read_var":
            return {"result": self.values.out(
                self.strategy.extended.read_var(variable))}
        if context == "update":
            return {"result": self.values.out(list(
                self.strategy.extended.update(
                    variable, lambda copy: copy.read_value(), group=False)))}
        with self.across(context):
            return {"result": self.values.out(variable.read_value())}

    @staticmethod
    def read_in_replica(variable, context):
        if context == "replica":
            return variable.read_value()
        if context == "replica_plus_one":
            return variable + 1
        with distribute_lib.variable_sync_on_read_context():
            return tf.identity(variable)

    def scatter(self, op):
        variable = self.variable(op)

        def write(rows):
            getattr(variable, op["method"])(rows)

        self.strategy.run(write, args=(self.values.into(op["value"]),))
        return {}

    def reduce_variable(self, op):
        variable = self.variable(op)
        reduced = self.strategy.reduce(op["reduce_op"], variable, axis=None)
        if reduced is variable:
            return {"result": {"variable": op["variable"]}}
        for i, copy in enumerate(self.values.local(variable)):
            if reduced is copy:
                return {"result": {"variable": op["variable"], "copy": i}}
        return {"result": self.values.out(reduced)}

    def local_copies(self, op):
        return {"result": self.values.out([
            copy.read_value() for copy in
            self.strategy.experimental_local_results(self.variable(op))])}

    def save(self, op):
        """The number that a checkpoint of the variable holds."""
        with tempfile.TemporaryDirectory() as folder:
            path = tf.train.Checkpoint(v=self.variable(op)).write(
                os.path.join(folder, "saved"))
            saved = tf.train.load_checkpoint(path).get_tensor(SAVED_KEY)
        return {"result": forms.tensor(saved)}

    def restore(self, op):
        """Reads a plain variable's checkpoint into the variable."""
        with tempfile.TemporaryDirectory() as folder:
            plain = tf.Variable(forms.array(op["value"]))
            path = tf.train.Checkpoint(v=plain).write(
                os.path.join(folder, "plain"))
            tf.train.Checkpoint(v=self.variable(op)).read(
                path).assert_consumed()
        return {}


__all__ = ["Executor", "TOPOLOGIES", "joined", "scenarios"]
