"""A small network in JAX, trained by as many workers as there are."""

import jax
import jax.numpy as jnp
import numpy as np

import lockstep

rng = np.random.default_rng(0)
x = rng.normal(size=(8192, 32)).astype(np.float32)
y = (x[:, :10] * 2 + x[:, 10:20]).argmax(axis=1)


def start(rows, columns):
    return (rng.normal(size=(rows, columns)) / rows**0.5).astype(np.float32)


def loss_of(w, x, y):
    hidden = jax.nn.relu(x @ w["hidden"] + w["hidden_bias"])
    logits = jax.nn.log_softmax(hidden @ w["out"])
    return -jnp.take_along_axis(logits, y[:, None], axis=1).mean()


gradients_of = jax.jit(jax.value_and_grad(loss_of))

worker = lockstep.Worker({"hidden": start(32, 64),
                          "hidden_bias": np.zeros(64, np.float32),
                          "out": start(64, 10)})
for step in worker.steps():
    rows = step.indices(len(x))
    loss, gradients = gradients_of(dict(step.values), x[rows], y[rows])
    step.push(gradients, loss=float(loss))
