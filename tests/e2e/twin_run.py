#!/usr/bin/env python3
"""Trains Fashion-MNIST with TensorFlow's SyncReplicasOptimizer on the batches
and from the values that Lockstep used, and compares the variables.

    twin_run.py OPTIMIZER INPUTS MODEL IMAGES LABELS

INPUTS is what write_twin_inputs has printed, MODEL the model.safetensors of
Lockstep's last checkpoint, IMAGES and LABELS gzipped IDX files. One worker makes
both gradients of each step: of several, one may make two where another is late,
and none would know which batches were used.
Exit code 1 if an element differs by more than 1e-5.
"""

import gzip
import json
import os
import socket
import sys
import threading

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

v1 = tf.compat.v1
v1.disable_eager_execution()
WORKERS = 1
AGGREGATED = 2  # gradients of a step, all of which the one worker makes
LARGEST_DIFFERENCE = 1e-5
# As deploy's job files say it: learning rates are those of twin_run_test.sh.
OPTIMIZERS = {
    "GRADIENT_DESCENT": lambda: v1.train.GradientDescentOptimizer(0.1),
    "MOMENTUM": lambda: v1.train.MomentumOptimizer(0.05, 0.9),
    "ADAM": lambda: v1.train.AdamOptimizer(0.001),
}


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


def build(worker, cluster, initial, optimizer):
    """One worker's graph: its operations, its feeds, and its hook."""
    device = v1.train.replica_device_setter(
        worker_device="/job:worker/task:%d" % worker, cluster=cluster)
    graph = tf.Graph()
    with graph.as_default(), v1.device(device):
        step = v1.train.get_or_create_global_step()
        variables = {
            name: v1.get_variable(name, initializer=value, use_resource=True)
            for name, value in initial.items()}
        images = v1.placeholder(tf.float32, [None, 784])
        labels = v1.placeholder(tf.int32, [None])
        logits = (tf.matmul(images, variables["softmax/weights"]) +
                  variables["softmax/bias"])
        loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(
                labels=labels, logits=logits))
        sync = v1.train.SyncReplicasOptimizer(
            OPTIMIZERS[optimizer](), replicas_to_aggregate=AGGREGATED,
            total_num_replicas=WORKERS)
        train = sync.minimize(loss, global_step=step)
        hook = sync.make_session_run_hook(
            worker == 0, num_tokens=AGGREGATED - WORKERS)
    return graph, train, images, labels, hook, step, variables


def main():
    optimizer, inputs, model, image_file, label_file = sys.argv[1:]
    initial, batches = read_inputs(inputs)
    passes = 1 + max(index for _, index in batches)
    steps = passes // AGGREGATED
    pixels = read_idx(image_file, 16).reshape(-1, 784)
    classes = read_idx(label_file, 8).astype(np.int32)
    cluster = v1.train.ClusterSpec({
        "ps": ["localhost:%d" % free_port()],
        "worker": ["localhost:%d" % free_port() for _ in range(WORKERS)]})
    servers = [v1.train.Server(cluster, job_name=job, task_index=i)
               for job, count in (("ps", 1), ("worker", WORKERS))
               for i in range(count)]
    result = {}
    done = threading.Barrier(WORKERS)

    def train_worker(worker):
        graph, train, images, labels, hook, step, variables = build(
            worker, cluster, initial, optimizer)
        with graph.as_default():
            session = v1.train.MonitoredTrainingSession(
                master=servers[1 + worker].target, is_chief=worker == 0,
                hooks=[hook], log_step_count_steps=None,
                stop_grace_period_secs=1)
            for i in range(passes):
                ids = batches[worker, i]
                session.run(train, {
                    images: pixels[ids].astype(np.float32) / np.float32(255),
                    labels: classes[ids]})
            done.wait()
            if worker == 0:
                raw = session._tf_sess()
                result["step"] = raw.run(step)
                result["variables"] = raw.run(variables)
            done.wait()

    threads = [threading.Thread(target=train_worker, args=(w,), daemon=True)
               for w in range(WORKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    if "variables" not in result:
        sys.exit("TensorFlow did not come to an end")
    assert result["step"] == steps, (result["step"], steps)
    worst = 0.0
    trained = read_safetensors(model)
    for name, value in result["variables"].items():
        difference = float(np.max(np.abs(trained[name] - value)))
        moved = float(np.max(np.abs(value - initial[name])))
        print("%s, %s after %d steps: differs by at most %.3g, has moved by %.3g"
              % (optimizer, name, steps, difference, moved))
        assert moved > 100 * LARGEST_DIFFERENCE, "nothing was trained"
        worst = max(worst, difference)
    sys.stdout.flush()
    # TensorFlow's servers cannot be shut down.
    os._exit(0 if worst <= LARGEST_DIFFERENCE else 1)


if __name__ == "__main__":
    main()
