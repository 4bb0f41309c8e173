"""Makes the scenarios of strategy_training.

The sizes of the numbers are chosen so that no subnormal ones arise. The errors
of softmax are measured by its largest gradient, which must not be near 0: the
probabilities stay away from 1, and there are more classes than examples, so
that the gradients of the examples do not cancel in all of them.
"""

import numpy as np

from record_strategies.forms import tensor

TOPOLOGIES = [
    {"kind": "Mirrored", "workers": 1, "replicas_per_worker": 2},
    {"kind": "Mirrored", "workers": 1, "replicas_per_worker": 3},
    {"kind": "MultiWorkerMirrored", "workers": 2, "replicas_per_worker": 1},
    {"kind": "MultiWorkerMirrored", "workers": 2, "replicas_per_worker": 2},
    {"kind": "MultiWorkerMirrored", "workers": 3, "replicas_per_worker": 1},
    {"kind": "MultiWorkerMirrored", "workers": 3, "replicas_per_worker": 2},
]

# What each argument of an optimizer is chosen from.
HYPER = {
    "GradientDescent": {},
    "Momentum": {"momentum": [0.0, 0.5, 0.9, 0.99],
                 "use_nesterov": [False, True]},
    "Adam": {"beta1": [0.5, 0.8, 0.9], "beta2": [0.9, 0.99, 0.999],
             "epsilon": [1e-8, 1e-3, 1e-2, 1.0]},
    "Adagrad": {"initial_accumulator_value": [0.01, 0.1, 1.0]},
    "RMSProp": {"decay": [0.5, 0.9], "momentum": [0.0, 0.9],
                "epsilon": [1e-10, 1e-3, 1e-2, 1.0],
                "centered": [False, True]},
    "Ftrl": {"learning_rate_power": [-0.5, -0.5, 0.0, -1.0],
             "initial_accumulator_value": [0.1, 1.0],
             "l1_regularization_strength": [0.0, 0.01, 0.05],
             "l2_regularization_strength": [0.0, 0.1, 0.5]},
}
FTRL_MORE = {"l2_shrinkage_regularization_strength": [0.0, 0.05],
             "beta": [0.0, 0.5]}
MOST_EACH = 4  # examples of a replica in one step
DTYPES = ["float32", "float32", "float32", "float64"]


def optimizer_of(rng, name, model):
    """An optimizer with random arguments; softmax learns slowly."""
    rate = rng.four_digits(-3, -1.3 if model == "softmax" else 0.5)
    choices = dict(HYPER[name])
    if name == "Ftrl" and rng.random() < 0.5:
        choices.update(FTRL_MORE)
    return {"name": name, "hyper": {
        "learning_rate": rate,
        **{key: rng.choice(values) for key, values in choices.items()}}}


def numbers(rng, shape, dtype, scale, digits, most=99):
    """Numbers with few digits, some of them 0, none larger than `most`."""
    values = [round(max(-most, min(most, rng.gauss(0, scale))), digits)
              if rng.random() > 0.05 else 0.0
              for _ in range(int(np.prod(shape, dtype=int)))]
    return tensor(np.array(values, dtype=dtype).reshape(shape))


def initial(rng, shape, dtype, scale=1.0):
    """Numbers with all digits of float32."""
    values = np.array([rng.gauss(0, scale) for _ in range(
        int(np.prod(shape, dtype=int)))], dtype="float32")
    return tensor(values.astype(dtype).reshape(shape))


def ids(rng, count, most):
    return tensor(np.array([rng.randrange(most) for _ in range(count)],
                           dtype="int64"))


class Linear:
    def __init__(self, rng, dtype, width=None):
        self.rng = rng
        self.dtype = dtype
        self.width = width or rng.randint(1, 8)

    def variables(self):
        return {"w": initial(self.rng, [self.width], self.dtype),
                "b": initial(self.rng, [], self.dtype)}

    def batch(self, count):
        return (numbers(self.rng, [count, self.width], self.dtype, 2, 3),
                numbers(self.rng, [count], self.dtype, 2, 2))


class Embedding:
    def __init__(self, rng, dtype):
        self.rng = rng
        self.dtype = dtype
        self.shape = [rng.randint(2, 9), rng.randint(1, 2)]

    def variables(self):
        return {"table": initial(self.rng, self.shape, self.dtype)}

    def batch(self, count):
        return (ids(self.rng, count, self.shape[0]),
                numbers(self.rng, [count, self.shape[1]], self.dtype, 1, 2))


class Softmax:
    def __init__(self, rng, dtype):
        self.rng = rng
        self.dtype = dtype
        self.shape = [rng.randint(2, 4), rng.randint(MOST_EACH + 1, 8)]

    def variables(self):
        return {"w": initial(self.rng, self.shape, self.dtype, 0.5),
                "b": tensor(np.zeros(self.shape[1:], self.dtype))}

    def batch(self, count):
        return (numbers(self.rng, [count, self.shape[0]], self.dtype, 1, 3,
                        1),
                ids(self.rng, count, self.shape[1]))


def wide(rng, dtype):
    """A linear model whose gradient has several chunks in a ring."""
    return Linear(rng, dtype, rng.randint(9, 100))


def steps(rng, model, replicas, each, count):
    """Steps with `each` examples for a replica; the last may have fewer."""
    short = rng.random() < 0.4
    for i in range(count):
        few = short and i == count - 1
        batches = [model.batch(rng.randint(1, each) if few else each)
                   for _ in range(replicas)]
        features, targets = zip(*batches)
        yield {"op": "step", "features": {"per_replica": list(features)},
               "targets": {"per_replica": list(targets)}}


def scenario(rng, topology, name, kind, make, count):
    replicas = topology["workers"] * topology["replicas_per_worker"]
    dtype = rng.choice(DTYPES)
    model = make(rng, dtype)
    each = rng.randint(1, MOST_EACH)
    return {
        "optimizer": optimizer_of(rng, name, kind), "dtype": dtype,
        "model": kind, "global_batch": each * replicas,
        "graph": rng.random() < 0.4,
        "variables": [{"name": key, "initial": value}
                      for key, value in model.variables().items()],
        "ops": list(steps(rng, model, replicas, each, count))}


def scenarios(rng, topology, turn):
    """Every optimizer with the written models, some with the others."""
    plan = [(name, kind, make, 4) for name in HYPER
            for kind, make in (("linear", Linear), ("embedding", Embedding))]
    plan += [(name, "softmax", Softmax, 4)
             for name in rng.sample(list(HYPER), 3)]
    plan.append((rng.choice(list(HYPER)), "wide", wide, 2))
    place = "%s_%dx%d" % (topology["kind"], topology["workers"],
                          topology["replicas_per_worker"])
    for i, (name, label, make, count) in enumerate(plan):
        kind = "linear" if label == "wide" else label
        yield {"name": "%s/%s_%s_%d" % (place, name, label,
                                        turn * len(plan) + i),
               **scenario(rng, topology, name, kind, make, count)}
