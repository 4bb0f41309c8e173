"""Values of a trace of strategies: their form in the file, and TensorFlow's."""

import json

import numpy as np
import recording
import tensorflow as tf
from tensorflow.python.distribute import ps_values, values
from tensorflow.python.ops.resource_variable_ops import BaseResourceVariable

_PLAIN_KINDS = ("Default", "OneDevice")


def number(x):
    """A number as JSON has it, which reads back as x in its own type."""
    if isinstance(x, (np.bool_, bool)):
        return bool(x)
    if np.issubdtype(type(x), np.integer):
        return int(x)
    return recording.number(x)


def tensor(array):
    array = np.asarray(array)
    return {"dtype": array.dtype.name, "shape": list(array.shape),
            "data": [number(x) for x in array.flat]}


def array(form):
    return np.array([float(x) if isinstance(x, str) else x
                     for x in form["data"]],
                    dtype=form["dtype"]).reshape(form["shape"])


def leaf(form):
    """A tensor or slices, as TensorFlow takes them."""
    if "indices" not in form:
        return tf.constant(array(form))
    shape = form.get("dense_shape")
    return tf.IndexedSlices(
        tf.constant(array(form["values"])),
        tf.constant(form["indices"], form.get("index_dtype", "int64"),
                    [len(form["indices"])]),
        None if shape is None else tf.constant(shape, tf.int64))


def leaf_form(value):
    """The form of a tensor, slices, an array or a number."""
    if not isinstance(value, tf.IndexedSlices):
        return tensor(value.numpy() if hasattr(value, "numpy") else value)
    shape = value.dense_shape
    return {"indices": [int(i) for i in value.indices.numpy()],
            "values": tensor(value.values.numpy()),
            "dense_shape": None if shape is None else
            [int(d) for d in np.asarray(shape)]}


def same(forms):
    """Whether all forms are equal, also in the sign of a zero."""
    return len({json.dumps(form, sort_keys=True) for form in forms}) < 2


def components(forms):
    """A list of components, or its one with `times` where all are equal."""
    if len(forms) > 1 and same(forms):
        return {"times": len(forms), "list": forms[:1]}
    return {"list": forms}


def wrapped(key, forms):
    made = components(forms)
    entry = {key: made["list"]}
    if "times" in made:
        entry["times"] = made["times"]
    return entry


class Values:
    """Values that go into a strategy, and that come out, in one worker.

    `variables` is a dict of the scenario's variables by name, which the
    executor fills.
    """

    def __init__(self, strategy, topology, worker):
        self.strategy = strategy
        self.topology = topology
        self.worker = worker
        self.variables = {}

    def mine(self, leaves):
        """This worker's part of a list with an entry for every replica."""
        each = self.topology["replicas_per_worker"]
        return leaves[self.worker * each:(self.worker + 1) * each]

    def placed(self, leaves):
        """This worker's leaves, each on the device of its replica."""
        if self.topology["kind"] in _PLAIN_KINDS:
            return [leaf(leaves[0])]
        made = []
        for form, device in zip(leaves, self.strategy.extended.worker_devices):
            with tf.device(device):
                made.append(leaf(form))
        return made

    def into(self, form):
        """What the function of TensorFlow is given for `form`."""
        plain = self.topology["kind"] in _PLAIN_KINDS
        if "per_replica" in form:
            made = self.placed(self.mine(form["per_replica"]))
            return made[0] if plain else values.PerReplica(made)
        if "mirrored" in form:
            # Copies, not one object: TensorFlow sees whether it is the same.
            made = self.placed([form["mirrored"]] *
                               self.topology["replicas_per_worker"])
            return made[0] if plain else values.Mirrored(made)
        if "tensor" in form:
            return leaf(form["tensor"])
        if "per_worker" in form:
            return leaf(form["per_worker"][self.worker])
        if "numpy" in form:
            return array(form["numpy"])
        if "python" in form:
            return form["python"]
        if "variable" in form:
            return self.variables[form["variable"]]
        if "list" in form:
            return [self.into(x) for x in form["list"]]
        if "tuple" in form:
            return tuple(self.into(x) for x in form["tuple"])
        return {key: self.into(x) for key, x in form["dict"].items()}

    def name_of(self, variable):
        for name, known in self.variables.items():
            if known is variable:
                return name
        return None

    def out(self, value):
        """The entry of a result for what TensorFlow has returned."""
        if value is None:
            return None
        name = self.name_of(value)
        if name is not None:
            return {"variable": name}
        if isinstance(value, values.PerReplica):
            return wrapped("per_replica", [self.out(x) for x in value.values])
        if isinstance(value, values.Mirrored) and not isinstance(
                value, BaseResourceVariable):
            return wrapped("mirrored", [self.out(x) for x in value.values])
        if isinstance(value, (list, tuple)):
            key = "list" if isinstance(value, list) else "tuple"
            return {key: [self.out(x) for x in value]}
        if isinstance(value, dict):
            return {"dict": {key: self.out(x) for key, x in value.items()}}
        if isinstance(value, (bool, int, float, str)):
            return {"python": value}
        return leaf_form(value)

    def local(self, variable):
        """The local copies of a variable."""
        if isinstance(variable, ps_values.AggregatingVariable):
            return (variable._v,)
        if isinstance(variable, values.DistributedVariable):
            return variable.values
        return self.strategy.experimental_local_results(variable)
