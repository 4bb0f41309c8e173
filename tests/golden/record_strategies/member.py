"""One worker of a team: executes scenarios that come in, a line each.

    python -m record_strategies.member KIND TOPOLOGY WORKER

KIND names the module of the trace, TOPOLOGY is the JSON of its `strategy`. A
scenario on standard input is answered by a line on standard output: a list with
an answer for each operation. TF_CONFIG is in the environment where there are
several workers.
"""

import importlib
import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import tensorflow as tf  # noqa: E402
from tensorflow.python.distribute import (  # noqa: E402
    collective_all_reduce_strategy as collective)

ANSWERS = {
    "InvalidArgumentError": "INVALID_ARGUMENT",
    "ValueError": "INVALID_ARGUMENT",
    "TypeError": "INVALID_ARGUMENT",
    "AssertionError": "INVALID_ARGUMENT",
    "KeyError": "INVALID_ARGUMENT",
    "IndexError": "INVALID_ARGUMENT",
    "AttributeError": "INVALID_ARGUMENT",
    "RuntimeError": "FAILED_PRECONDITION",
    "NotImplementedError": "UNIMPLEMENTED",
    "UnimplementedError": "UNIMPLEMENTED",
    "FailedPreconditionError": "FAILED_PRECONDITION",
    "OutOfRangeError": "OUT_OF_RANGE",
    "NotFoundError": "NOT_FOUND",
    "InternalError": "INTERNAL",
    "AbortedError": "ABORTED",
    "UnavailableError": "UNAVAILABLE",
    "CancelledError": "CANCELLED",
}


def refusal(error):
    """The answer of an operation that has raised `error`."""
    name = type(error).__name__
    for base in type(error).__mro__:
        if base.__name__ in ANSWERS:
            return {"status": ANSWERS[base.__name__], "exception": name,
                    "text": str(error)[:400]}
    return {"status": "UNKNOWN", "exception": name, "text": str(error)[:400]}


def prepare(topology):
    """One thread, no rewriting of graphs, and a CPU device for each replica."""
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(
        4 * topology["workers"] * topology["replicas_per_worker"] + 4)
    tf.config.optimizer.set_experimental_options(
        {"disable_meta_optimizer": True})
    more = topology["kind"] in ("Mirrored", "CentralStorage")
    devices = topology["replicas_per_worker"] + (1 if more else 0)
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0],
        [tf.config.LogicalDeviceConfiguration()] * max(devices, 2))


def several_workers(each):
    """MultiWorkerMirroredStrategy with `each` CPU devices in every worker."""
    extended = collective.CollectiveAllReduceExtended
    one = extended._initialize_local_devices

    def local_devices(self, resolver, worker_device):
        one(self, resolver, worker_device)
        return tuple("%s/device:CPU:%d" % (worker_device, i)
                     for i in range(each)), "CPU"

    extended._initialize_local_devices = local_devices
    extended._enable_check_health = False
    return tf.distribute.MultiWorkerMirroredStrategy()


def strategy_of(topology):
    kind = topology["kind"]
    each = topology["replicas_per_worker"]
    devices = ["/cpu:%d" % i for i in range(each)]
    if kind == "Default":
        return tf.distribute.get_strategy()
    if kind == "OneDevice":
        return tf.distribute.OneDeviceStrategy("/cpu:0")
    if kind == "Mirrored":
        return tf.distribute.MirroredStrategy(devices)
    if kind == "CentralStorage":
        return tf.distribute.experimental.CentralStorageStrategy(
            devices, "/cpu:%d" % each)
    return several_workers(each)


def main(kind, topology, worker):
    prepare(topology)
    strategy = strategy_of(topology)
    module = importlib.import_module("record_strategies." + kind)
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what TensorFlow prints is no answer
    tf.get_logger().setLevel("ERROR")
    for line in sys.stdin:
        scenario = json.loads(line)
        executor = module.Executor(strategy, topology, worker, scenario)
        done = []
        for op in scenario["ops"]:
            try:
                done.append({"status": "OK", **executor.execute(op)})
            except Exception as error:  # the trace has every refusal
                done.append({**refusal(error), **executor.after(op)})
        answers.write(json.dumps(done) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3]))
