#!/usr/bin/env python3
"""Trains Fashion-MNIST with TensorFlow's SyncReplicasOptimizer on the batches
and from the values that Lockstep used, and compares the variables.

    twin_run.py OPTIMIZER WORKERS INPUTS MODEL IMAGES LABELS

INPUTS is what write_twin_inputs has printed, MODEL the model.safetensors of
Lockstep's last checkpoint, IMAGES and LABELS gzipped IDX files. A step takes two
gradients: of one worker that makes both, or of two workers that begin each step
together; otherwise one may make two where the other is late, and none would know
which batches were used.
Exit code 1 if an element differs by more than 1e-5.
"""

import os
import sys
import threading

import twin_inputs
from twin_inputs import OPTIMIZERS, Inputs, free_port, tf, v1

v1.disable_eager_execution()
AGGREGATED = 2  # gradients of a step


def build(worker, workers, cluster, initial, optimizer):
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
        sync = v1.train.SyncReplicasOptimizer(
            OPTIMIZERS[optimizer](), replicas_to_aggregate=AGGREGATED,
            total_num_replicas=workers)
        train = sync.minimize(twin_inputs.loss_of(variables, images, labels),
                              global_step=step)
        hook = sync.make_session_run_hook(
            worker == 0, num_tokens=AGGREGATED - workers)
    return graph, train, images, labels, hook, step, variables


def main():
    optimizer, workers, inputs, model, image_file, label_file = sys.argv[1:]
    workers = int(workers)
    data = Inputs(inputs, image_file, label_file)
    steps = data.passes * workers // AGGREGATED
    cluster = v1.train.ClusterSpec({
        "ps": ["localhost:%d" % free_port()],
        "worker": ["localhost:%d" % free_port() for _ in range(workers)]})
    servers = [v1.train.Server(cluster, job_name=job, task_index=i)
               for job, count in (("ps", 1), ("worker", workers))
               for i in range(count)]
    result = {}
    together = threading.Barrier(workers)
    begun = threading.Event()  # the chief's session; others would wait 30 s

    def train_worker(worker):
        graph, train, images, labels, hook, step, variables = build(
            worker, workers, cluster, data.initial, optimizer)
        if worker > 0:
            begun.wait()
        with graph.as_default():
            session = v1.train.MonitoredTrainingSession(
                master=servers[1 + worker].target, is_chief=worker == 0,
                hooks=[hook], log_step_count_steps=None,
                stop_grace_period_secs=1)
            begun.set()
            for i in range(data.passes):
                together.wait()
                x, y = data.batch(worker, i)
                session.run(train, {images: x, labels: y})
            together.wait()
            if worker == 0:
                raw = session._tf_sess()
                result["step"] = raw.run(step)
                result["variables"] = raw.run(variables)
            together.wait()

    threads = [threading.Thread(target=train_worker, args=(w,), daemon=True)
               for w in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    if "variables" not in result:
        sys.exit("TensorFlow did not come to an end")
    assert result["step"] == steps, (result["step"], steps)
    same = twin_inputs.compare(
        "%s, %d workers" % (optimizer, workers), steps, data.initial,
        twin_inputs.read_safetensors(model), result["variables"])
    sys.stdout.flush()
    # TensorFlow's servers cannot be shut down.
    os._exit(0 if same else 1)


if __name__ == "__main__":
    main()
