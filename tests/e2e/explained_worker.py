"""A worker with a trouble that a test asks for.

Environment:
  TROUBLE   "slow": worker 1 computes for long; "reader": worker 1 waits long
            for its data; "dies": worker 1 ends after each few steps; "updates":
            the model is large and its gradients cost nothing; "none"
"""

import os
import time

import lockstep
import numpy as np

TROUBLE = os.environ["TROUBLE"]

SIZE = 6_000_000 if TROUBLE == "updates" else 1000

worker = lockstep.Worker({"w": np.zeros(SIZE, np.float32)})
gradient = np.full(SIZE, 1e-3, np.float32)
passes = 0
for step in worker.steps():
    mine = worker.index == 1
    with step.reading():
        if TROUBLE == "reader" and mine:
            time.sleep(0.04)
    if TROUBLE == "slow" and mine:
        time.sleep(0.04)
    if TROUBLE == "none":
        time.sleep(0.04)
    passes += 1
    if TROUBLE == "dies" and mine and passes == 5:
        os._exit(139)  # asks to be started again
    step.push({"w": gradient})
