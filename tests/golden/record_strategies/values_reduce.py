"""Reductions, gathers and broadcasts of strategy_values."""

import tensorflow as tf
from tensorflow.python.distribute import values

from record_strategies.values_run import context


def options_of(op):
    if "bytes_per_pack" not in op:
        return None
    return tf.distribute.experimental.CommunicationOptions(
        bytes_per_pack=op["bytes_per_pack"])


def in_graph(run, graph):
    """Calls `run`, within one tf.function where `graph` is set.

    A tf.function cannot return a Mirrored, so its components leave it, and
    they are joined again outside.
    """
    if not graph:
        return run()
    kept = []

    def traced():
        result = run()
        flat = tf.nest.flatten(result, expand_composites=False)
        kept.append((result, [type(x) for x in flat]))
        return [x.values if isinstance(x, values.DistributedValues) else x
                for x in flat]

    flat = tf.function(traced, autograph=False)()
    result, types = kept[-1]
    return tf.nest.pack_sequence_as(result, [
        kind(x) if issubclass(kind, values.DistributedValues) else x
        for kind, x in zip(types, flat)])


class Reduce:
    """The operations that bring the values of replicas together."""

    def all_reduce(self, op):
        value = self.values.into(op["value"])
        options = options_of(op)
        return self.result(in_graph(lambda: self.strategy.run(
            lambda x: context().all_reduce(op["reduce_op"], x, options),
            (value,)), op["graph"]))

    def all_gather(self, op):
        value = self.values.into(op["value"])
        return self.result(in_graph(lambda: self.strategy.run(
            lambda x: context().all_gather(x, op["axis"]), (value,)),
            op.get("graph")))

    def reduce(self, op):
        axis = op["axis"]
        return self.result(self.strategy.reduce(
            op["reduce_op"], self.values.into(op["value"]),
            axis=tuple(axis) if isinstance(axis, list) else axis))

    def gather(self, op):
        return self.result(self.strategy.gather(
            self.values.into(op["value"]), op["axis"]))

    def destination(self, form, value):
        """What TensorFlow takes for a destination: a value, a variable, a
        device or a list of devices, which it refuses."""
        if form == "value":
            return value
        if form == "list":
            return list(self.worker_devices())
        if isinstance(form, dict):
            return self.values.into(form)
        return self.worker_devices()[form]

    def reduce_to(self, op):
        value = self.values.into(op["value"])
        destination = self.destination(op["destination"], value)
        with self.strategy.scope():
            return self.result(self.strategy.extended.reduce_to(
                op["reduce_op"], value, destination))

    def batch_reduce_to(self, op):
        pairs = []
        for pair in op["pairs"]:
            value = self.values.into(pair["value"])
            pairs.append((value,
                          self.destination(pair["destination"], value)))

        def run():
            with self.strategy.scope():
                return list(self.strategy.extended.batch_reduce_to(
                    op["reduce_op"], pairs, options_of(op)))

        return self.result(in_graph(run, op.get("graph")))

    def broadcast_to(self, op):
        value = self.values.into(op["value"])
        destination = self.destination(op["destination"], value)
        with self.strategy.scope():
            return self.result(self.strategy.extended.broadcast_to(
                value, destination))
