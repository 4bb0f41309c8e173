"""What replica functions and merge functions of strategy_values compute."""

import tensorflow as tf
from tensorflow.python.distribute import values

SUM = tf.distribute.ReduceOp.SUM
MEAN = tf.distribute.ReduceOp.MEAN
RAISED = "raised by the function"


def context():
    return tf.distribute.get_replica_context()


def identity_of_replica():
    return tf.convert_to_tensor(context().replica_id_in_sync_group, tf.int32)


def is_last():
    last = context().num_replicas_in_sync - 1
    return int(context().replica_id_in_sync_group) == last


def fail():
    raise ValueError(RAISED)


def double(strategy, x):
    return x + x


def identity(strategy, x):
    return x


def add(strategy, x, y):
    return x + y


def add_id(strategy, x):
    return x + tf.cast(identity_of_replica(), x.dtype)


def id_and_count(strategy):
    return (identity_of_replica(),
            tf.constant(context().num_replicas_in_sync, tf.int32))


def structure(strategy, x):
    return {"a": x + x, "b": [x * x, (x - x,)]}


def none(strategy, x):
    return None


def is_first_local(strategy):
    count = len(strategy.extended.worker_devices)
    return int(context().replica_id_in_sync_group) % count == 0


def lengths_differ(strategy, x):
    return (x,) if is_first_local(strategy) else (x, x)


def keys_differ(strategy, x):
    return {"a": x} if is_first_local(strategy) else {"b": x}


def all_reduce_twice(strategy, x):
    once = context().all_reduce(SUM, x)
    return context().all_reduce(SUM, once)


def raise_in_last(strategy, x):
    if is_last():
        fail()
    return x


def raise_in_merge(strategy, x):
    return context().merge_call(lambda _, y: fail(), args=(x,))


def raise_in_run_in_merge(strategy, x):
    return context().merge_call(
        lambda mine, y: mine.run(raise_in_last, (mine, y)), args=(x,))


def raise_in_merge_in_run_in_merge(strategy, x):
    return context().merge_call(
        lambda mine, y: mine.run(raise_in_merge, (mine, y)), args=(x,))


def merge_wrong_context(strategy, x):
    mine = context()
    return mine.merge_call(
        lambda _, y: mine.merge_call(lambda _, z: z, args=(y,)), args=(x,))


def run_in_replica(strategy, x):
    return strategy.run(lambda: None)


def scope_in_replica(strategy, x):
    with strategy.scope():
        return x


def reduce_in_replica(strategy, x):
    return strategy.reduce(SUM, x, axis=None)


def gather_in_replica(strategy, x):
    return strategy.gather(x, axis=0)


REPLICA = {fn.__name__: fn for fn in (
    double, identity, add, add_id, id_and_count, structure, none,
    lengths_differ, keys_differ, all_reduce_twice, raise_in_last,
    raise_in_merge, raise_in_run_in_merge, raise_in_merge_in_run_in_merge,
    merge_wrong_context, run_in_replica, scope_in_replica, reduce_in_replica,
    gather_in_replica)}


def sum_locals(strategy, x):
    locals_ = strategy.experimental_local_results(x)
    total = locals_[0]
    for each in locals_[1:]:
        total = total + each
    return total


def reduced(strategy, reduce_op, x):
    return strategy.extended.reduce_to(reduce_op, x, x)


MERGE = {
    "sum_locals": sum_locals,
    "pass": identity,
    "reduce_sum": lambda strategy, x: reduced(strategy, SUM, x),
    "reduce_mean": lambda strategy, x: reduced(strategy, MEAN, x),
    "structure": lambda strategy, x: {
        "m": reduced(strategy, SUM, x), "l": [x, sum_locals(strategy, x)]},
    "nested_run": lambda strategy, x: strategy.run(add_id, (strategy, x)),
    "none": none,
    "kind": lambda strategy, x: tf.constant(
        int(isinstance(x, values.PerReplica)), tf.int32),
}


class Run:
    """The operations `run`, `run_bad_args`, `merge_call`, `local_results` and
    `distribute_values`."""

    def run(self, op):
        fn = REPLICA[op["fn"]]
        kwargs = self.values.into(op.get("kwargs", {"dict": {}}))
        return self.result(self.strategy.run(
            lambda *args, **more: fn(self.strategy, *args, **more),
            [self.values.into(x) for x in op["args"]], kwargs))

    def run_bad_args(self, op):
        return self.result(self.strategy.run(
            lambda x: x, self.values.into(op["args"])))

    def merge_call(self, op):
        fn = MERGE[op["fn"]]
        return self.result(self.strategy.run(
            lambda x: context().merge_call(fn, args=(x,)),
            (self.values.into(op["value"]),)))

    def local_results(self, op):
        return self.result(self.strategy.experimental_local_results(
            self.values.into(op["value"])))

    def distribute_values(self, op):
        table = op.get("table")

        def entry(i):
            return self.values.into({"tensor": table[i]})

        def made(where):
            at = int(where.replica_id_in_sync_group)
            count = where.num_replicas_in_sync
            return {
                "id": lambda: tf.constant(at, tf.int32),
                "count": lambda: tf.constant(count, tf.int32),
                "fraction": lambda: tf.constant(at / count, tf.float32),
                "table": lambda: entry(at),
                "constant": lambda: entry(0),
                "nested": lambda: [entry(at),
                                   (tf.constant(count, tf.int32),)],
            }[op["fn"]]()

        return self.result(
            self.strategy.experimental_distribute_values_from_function(made))
