"""Traces of data sets that a strategy distributes: executes the operations."""

import pathlib
import tempfile

import numpy as np
import tensorflow as tf

from record_strategies import forms, made_input, team

TOPOLOGIES = made_input.TOPOLOGIES
scenarios = made_input.scenarios

MOST_STEPS = 500  # of an epoch; a data set without end needs a limit

# The exception, a part of its text, and the name of the reason.
REASONS = [
    ("IndexError", "", "not_batched"),
    ("ValueError", "divisible", "batch_not_divisible"),
    ("InvalidArgumentError", "shard", "too_few_files"),
    ("InvalidArgumentError", "greater than zero", "batch_size_below_one"),
    ("NotFoundError", "", "no_files"),
    ("NotImplementedError", "", "per_replica_input"),
    ("AttributeError", "", "per_replica_input"),
    ("UnavailableError", "", "collectives_aborted"),
    ("AbortedError", "", "collectives_aborted"),
    ("CancelledError", "", "collectives_aborted"),
    ("OutOfRangeError", "", "end_of_data"),
    (None, "", "silent"),
]


def with_unknown_batch(x):
    """x, of whose shape the first dimension is unknown."""
    return tf.raw_ops.PlaceholderWithDefault(
        input=x, shape=[None] + list(x.shape[1:]))


STEPS = {
    "batch": lambda data, size, drop: data.batch(size, drop_remainder=drop),
    "repeat": lambda data, count: data.repeat(count),
    "add": lambda data, number: data.map(lambda x: x + number),
    "take": lambda data, count: data.take(count),
    "skip": lambda data, count: data.skip(count),
    "prefetch": lambda data, count: data.prefetch(count),
    "filter_even": lambda data: data.filter(lambda x: x % 2 == 0),
    "unknown_batch": lambda data: data.map(with_unknown_batch),
}

# Those of a function that makes a data set.
CONTEXT_STEPS = {
    "shard": lambda data, context: data.shard(
        context.num_input_pipelines, context.input_pipeline_id),
    "id_times": lambda data, context, number: data.map(
        lambda x: x + number * context.input_pipeline_id),
    "batch_per_replica": lambda data, context, size, drop: data.batch(
        context.get_per_replica_batch_size(size), drop_remainder=drop),
}


def context_form(context):
    return {"num_input_pipelines": context.num_input_pipelines,
            "input_pipeline_id": context.input_pipeline_id,
            "num_replicas_in_sync": context.num_replicas_in_sync}


class Executor:
    """Executes the operations of one scenario in one worker."""

    def __init__(self, strategy, topology, worker, scenario):
        self.strategy = strategy
        self.worker = worker
        self.directory = None
        self.files = 0

    def execute(self, op):
        if op["op"] == "per_replica_batch_size":
            context = tf.distribute.InputContext(
                num_replicas_in_sync=op["replicas"])
            return {"result": context.get_per_replica_batch_size(
                op["global_batch"])}
        result = {}
        distributed = self.distributed(op, result)
        result["epochs"] = [self.epoch(op, distributed)
                            for _ in range(op.get("epochs", 1))]
        return {"result": result}

    def after(self, op):
        return {}

    def distributed(self, op, result):
        """The distributed data set; the contexts of a function go to result."""
        recorded = op["dataset"]
        options = None  # CentralStorage reads none, and refuses any
        if "replication" in op:
            options = tf.distribute.InputOptions(
                experimental_replication_mode=getattr(
                    tf.distribute.InputReplicationMode, op["replication"]))
        if op["op"] == "distribute_dataset":
            return self.strategy.experimental_distribute_dataset(
                self.dataset(recorded), options)
        result["contexts"] = []

        def make(context):
            result["contexts"].append(context_form(context))
            return self.dataset(recorded, context)

        return self.strategy.distribute_datasets_from_function(make, options)

    def dataset(self, recorded, context=None):
        data = self.source(recorded["source"])
        for name, *arguments in recorded["steps"]:
            if name in CONTEXT_STEPS:
                data = CONTEXT_STEPS[name](data, context, *arguments)
            else:
                data = STEPS[name](data, *arguments)
        if "policy" not in recorded:
            return data
        options = tf.data.Options()
        options.experimental_distribute.auto_shard_policy = getattr(
            tf.data.experimental.AutoShardPolicy, recorded["policy"])
        return data.with_options(options)

    def source(self, source):
        if "range" in source:
            count = source["range"]
            if isinstance(count, list):
                count = count[self.worker]
            return tf.data.Dataset.range(count)
        if "slices" in source:
            return tf.data.Dataset.from_tensor_slices(
                np.arange(source["slices"], dtype=np.int64))
        names = [self.written(numbers) for numbers in source["files"]]
        if "interleave" not in source:
            lines = tf.data.TextLineDataset(names)
        else:
            lines = tf.data.Dataset.from_tensor_slices(names).interleave(
                tf.data.TextLineDataset, cycle_length=source["interleave"],
                block_length=1)
        return lines.map(lambda x: tf.strings.to_number(x, tf.int64))

    def written(self, numbers):
        """The name of a new file with these numbers, one a line."""
        if self.directory is None:
            self.directory = tempfile.TemporaryDirectory()
        self.files += 1
        path = pathlib.Path(self.directory.name, "%d.txt" % self.files)
        path.write_text("".join("%d\n" % each for each in numbers))
        return str(path)

    def epoch(self, op, distributed):
        """Reads to the end, or so many steps as the operation's limit."""
        iterator = iter(distributed)
        steps = []
        while len(steps) != op.get("limit"):
            if len(steps) > MOST_STEPS:
                raise SystemExit("a data set does not end")
            value, end = self.step(op["by"], iterator)
            if end:
                return {"steps": steps, "end": end}
            steps.append([forms.tensor(piece.numpy()) for piece in
                          self.strategy.experimental_local_results(value)])
        return {"steps": steps, "end": None}

    @staticmethod
    def step(by, iterator):
        """The next step, or None and how the iterator says that it ends."""
        if by == "optional":
            optional = iterator.get_next_as_optional()
            if not optional.has_value().numpy():
                return None, "NO_VALUE"
            return optional.get_value(), None
        try:
            if by == "next":
                return next(iterator), None
            return iterator.get_next(), None
        except (StopIteration, tf.errors.OutOfRangeError):
            return None, "OUT_OF_RANGE"


# Of a worker that waits for one that has failed, and never notices.
SILENT = {"status": "UNAVAILABLE", "exception": None, "text": ""}


def reason_of(answer):
    for exception, part, reason in REASONS:
        if answer["exception"] == exception and part in answer["text"]:
            return reason
    return "unknown"


def one_or_each(values):
    """The value of all workers, or a list where they differ."""
    values = list(values)
    return values[0] if all(x == values[0] for x in values) else values


def joined(op, answers, topology):
    """What goes beside the operation, from the answers of the workers."""
    answers = [SILENT if x is None else x for x in answers]
    entry = {"status": one_or_each(x["status"] for x in answers)}
    if all(x["status"] == "OK" for x in answers):
        entry["result"] = team.joined(x["result"] for x in answers)
        return entry
    entry["reason"] = one_or_each(
        None if x["status"] == "OK" else reason_of(x) for x in answers)
    entry["exception"] = one_or_each(x.get("exception") for x in answers)
    return entry
