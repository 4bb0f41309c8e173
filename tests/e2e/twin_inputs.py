"""What the programs that train beside Lockstep share: the data, the inputs
that write_twin_inputs has printed, and the comparison of variables."""

import gzip
import json
import os
import socket

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

v1 = tf.compat.v1
LARGEST_DIFFERENCE = 1e-5
# As deploy's job files say it: learning rates are those of twin_run_test.sh.
OPTIMIZERS = {
    "GRADIENT_DESCENT": lambda: v1.train.GradientDescentOptimizer(0.1),
    "MOMENTUM": lambda: v1.train.MomentumOptimizer(0.05, 0.9),
    "ADAM": lambda: v1.train.AdamOptimizer(0.001),
}


class Inputs:
    """The files that both sides train on."""

    def __init__(self, inputs, images, labels):
        self.initial, self.batches = read_inputs(inputs)
        self.passes = 1 + max(index for _, index in self.batches)
        self.pixels = read_idx(images, 16).reshape(-1, 784)
        self.classes = read_idx(labels, 8).astype(np.int32)

    def batch(self, worker, index):
        ids = self.batches[worker, index]
        return (self.pixels[ids].astype(np.float32) / np.float32(255),
                self.classes[ids])


def read_idx(path, header):
    with gzip.open(path) as file:
        return np.frombuffer(file.read()[header:], dtype=np.uint8)


def read_safetensors(path):
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
        data = file.read()
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        assert entry["dtype"] == "F32", entry
        tensors[name] = np.frombuffer(data[begin:end], dtype=np.float32)
        tensors[name] = tensors[name].reshape(entry["shape"])
    return tensors


def read_inputs(path):
    initial, batches = {}, {}
    with open(path) as file:
        for line in file:
            entry = json.loads(line)
            if "variable" in entry:
                values = np.array(entry["values"], dtype=np.float32)
                initial[entry["variable"]] = values.reshape(entry["shape"])
            else:
                key = entry["worker"], entry["step"]
                batches[key] = entry["examples"]
    return initial, batches


def free_port():
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return probe.getsockname()[1]


def loss_of(variables, images, labels):
    logits = (tf.matmul(images, variables["softmax/weights"]) +
              variables["softmax/bias"])
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=labels, logits=logits))


def compare(what, steps, initial, trained, variables):
    """Prints the differences of both results; returns whether all are small."""
    worst = 0.0
    for name, value in variables.items():
        difference = float(np.max(np.abs(trained[name] - value)))
        moved = float(np.max(np.abs(value - initial[name])))
        print("%s, %s after %d steps: differs by at most %.3g, has moved by %.3g"
              % (what, name, steps, difference, moved), flush=True)
        assert moved > 100 * LARGEST_DIFFERENCE, "nothing was trained"
        worst = max(worst, difference)
    return worst <= LARGEST_DIFFERENCE
