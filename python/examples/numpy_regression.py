"""Linear regression with numpy alone: any framework works like this."""

import lockstep
import numpy as np

rng = np.random.default_rng(0)
x = rng.normal(size=(4096, 8)).astype(np.float32)
true = np.arange(8, dtype=np.float32)
y = x @ true + 0.1 * rng.normal(size=4096).astype(np.float32)

worker = lockstep.Worker({"w": np.zeros(8, np.float32),
                          "b": np.zeros((), np.float32)})
for step in worker.steps():
    rows = step.indices(len(x))
    w, b = step.values["w"], step.values["b"]
    error = x[rows] @ w + b - y[rows]
    step.push({"w": 2 * x[rows].T @ error / len(rows),
               "b": np.float32(2 * error.mean())},
              loss=float((error**2).mean()))
