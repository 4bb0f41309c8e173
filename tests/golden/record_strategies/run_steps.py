"""Traces of the loop of several steps: executes the operations."""

import tensorflow as tf

from record_strategies import forms, made_run_steps, team

TOPOLOGIES = made_run_steps.TOPOLOGIES
scenarios = made_run_steps.scenarios

REASONS = {"OutOfRangeError": "end_of_data",
           "AssertionError": "reduce_op_required"}


def reduce_op_of(output):
    name = output["reduce_op"]
    return None if name is None else getattr(tf.distribute.ReduceOp, name)


class Executor:
    """Executes the operations of one scenario in one worker."""

    def __init__(self, strategy, topology, worker, scenario):
        self.strategy = strategy
        self.values = forms.Values(strategy, topology, worker)
        self.calls = 0
        self.total = None

    def execute(self, op):
        self.calls = 0
        with self.strategy.scope():
            self.total = tf.Variable(
                0.0, synchronization=tf.VariableSynchronization.ON_READ,
                aggregation=tf.VariableAggregation.SUM)
        data = tf.data.Dataset.range(op["range"]).map(
            lambda x: tf.cast(x, tf.float32)).batch(op["batch"])
        iterator = iter(self.strategy.experimental_distribute_dataset(data))
        context = self.strategy.extended.experimental_run_steps_on_iterator(
            lambda context, inputs: self.step(op, context, inputs), iterator,
            op["iterations"], self.first_outputs(op))
        return {"result": {
            "calls": self.calls,
            "total": self.values.out(self.total.read_value()),
            "last_step_outputs": self.all_out(context.last_step_outputs),
            "non_tensor_outputs": self.all_out(context.non_tensor_outputs)}}

    def after(self, op):
        return {}

    def first_outputs(self, op):
        """The loop asks for values of the outputs before its first step."""
        each = self.strategy.num_replicas_in_sync
        return {output["name"]:
                [0.0] * (each if output["reduce_op"] is None else 1)
                for output in op["outputs"]}

    def step(self, op, context, inputs):
        """Every replica adds the sum of its examples to the total."""
        self.calls += 1

        def in_replica(examples):
            mine = tf.reduce_sum(examples)
            self.total.assign_add(mine)
            if op["set_in"] == "replica":
                self.set_outputs(op, context, lambda scale: mine * scale)
            if op["non_tensor"]:
                context.set_non_tensor_output("text", "step")
            return mine

        sums = self.strategy.run(in_replica, args=(inputs,))
        if op["set_in"] == "cross":
            self.set_outputs(op, context, lambda scale: self.strategy.run(
                lambda mine: mine * scale, args=(sums,)))
            if op["non_tensor"]:
                context.set_non_tensor_output("cross", self.calls)
        return sums

    @staticmethod
    def set_outputs(op, context, scaled):
        for output in op["outputs"]:
            context.set_last_step_output(
                output["name"], scaled(output["scale"]), reduce_op_of(output))

    def all_out(self, outputs):
        return {name: self.values.out(value)
                for name, value in outputs.items()}


def joined(op, answers, topology):
    """What goes beside the operation, from the answer of the worker."""
    answer = answers[0]
    if answer["status"] == "OK":
        return {"status": "OK", "result": team.joined(
            x["result"] for x in answers)}
    return {"status": answer["status"],
            "reason": REASONS.get(answer["exception"], "unknown"),
            "exception": answer["exception"]}
