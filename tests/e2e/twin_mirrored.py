#!/usr/bin/env python3
"""Trains Fashion-MNIST with TensorFlow's MultiWorkerMirroredStrategy, each worker
a process, on the batches and from the values that Lockstep used, and compares the
variables.

    twin_mirrored.py OPTIMIZER WORKERS INPUTS MODEL IMAGES LABELS

Arguments and exit code are those of twin_run.py.
"""

import json
import os
import subprocess
import sys

import twin_inputs
from twin_inputs import OPTIMIZERS, Inputs, free_port, tf


def train(optimizer, worker, data):
    """The variables of this worker after all passes."""
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    workers = strategy.num_replicas_in_sync
    with strategy.scope():
        variables = {name: tf.Variable(value, name=name)
                     for name, value in data.initial.items()}
        rule = OPTIMIZERS[optimizer]()
    in_order = list(variables.values())

    def replica_step(x, y):
        with tf.GradientTape() as tape:
            loss = twin_inputs.loss_of(variables, x, y) / workers
        # The rule adds the gradients of all replicas.
        rule.apply_gradients(zip(tape.gradient(loss, in_order), in_order))

    @tf.function
    def step(x, y):
        strategy.run(replica_step, args=(x, y))

    for i in range(data.passes):
        x, y = data.batch(worker, i)
        step(tf.constant(x), tf.constant(y))
    return {name: variable.numpy() for name, variable in variables.items()}


def main():
    optimizer, workers, inputs, model, images, labels = sys.argv[1:]
    data = Inputs(inputs, images, labels)
    if "TF_CONFIG" in os.environ:
        worker = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
        variables = train(optimizer, worker, data)
        same = worker > 0 or twin_inputs.compare(
            "%s, %s mirrors" % (optimizer, workers), data.passes, data.initial,
            twin_inputs.read_safetensors(model), variables)
        sys.exit(0 if same else 1)
    cluster = {"worker": ["localhost:%d" % free_port()
                          for _ in range(int(workers))]}
    processes = [
        subprocess.Popen([sys.executable] + sys.argv, env=dict(
            os.environ, TF_CONFIG=json.dumps({
                "cluster": cluster, "task": {"type": "worker", "index": i}})))
        for i in range(int(workers))]
    try:
        codes = [process.wait(300) for process in processes]
    finally:
        for process in processes:
            process.kill()
    sys.exit(max(codes))


if __name__ == "__main__":
    main()
