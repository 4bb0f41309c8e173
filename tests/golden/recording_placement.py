"""Records how TensorFlow cuts variables and places operations."""

import contextlib

import tensorflow as tf

v1 = tf.compat.v1


def record_partition(rng, kind, dtype):
    which = rng.choice(["fixed_size", "variable_axis_size", "min_max"])
    shape = [rng.randint(1, 40) for _ in range(rng.randint(1, 3))]
    axis = rng.randrange(len(shape))
    if which == "fixed_size":
        arguments = {"num_shards": rng.randint(1, 6), "axis": axis}
        partitioner = v1.fixed_size_partitioner(**arguments)
    elif which == "variable_axis_size":
        arguments = {"max_shard_bytes": rng.randint(1, 4000), "axis": axis,
                     "bytes_per_string_element": 16,
                     "max_shards": rng.choice([None, 5])}
        partitioner = v1.variable_axis_size_partitioner(**arguments)
    else:
        arguments = {"max_partitions": rng.randint(1, 9), "axis": axis,
                     "min_slice_size": rng.randint(1, 4000),
                     "bytes_per_string_element": 16}
        partitioner = v1.min_max_variable_partitioner(**arguments)
    counts = partitioner(shape=tf.TensorShape(shape),
                         dtype=tf.as_dtype(dtype))
    scenario = {"partitioner": which, "arguments": arguments, "shape": shape,
                "dtype": dtype, "status": "OK",
                "partitions": [int(c) for c in counts], "variable": None}
    if max(counts) > 50:
        return scenario
    with tf.Graph().as_default():
        made = v1.get_variable("v", shape, tf.as_dtype(dtype),
                               partitioner=partitioner, use_resource=False)
        parts = []
        for part in made:
            info = part._get_save_slice_info()
            parts.append({"name": part.op.name,
                          "offset": [int(x) for x in info.var_offset],
                          "length": [int(x) for x in info.var_shape]})
    scenario["variable"] = {"status": "OK", "full_name": "v",
                            "full_shape": shape, "parts": parts}
    return scenario


SLOT_OPTIMIZERS = {
    "GradientDescent": lambda: v1.train.GradientDescentOptimizer(0.1),
    "Momentum": lambda: v1.train.MomentumOptimizer(0.1, 0.9),
    "Adagrad": lambda: v1.train.AdagradOptimizer(0.1),
    "Adam": lambda: v1.train.AdamOptimizer(0.1),
    "RMSProp": lambda: v1.train.RMSPropOptimizer(0.1),
    "Adadelta": lambda: v1.train.AdadeltaOptimizer(0.1),
    "Ftrl": lambda: v1.train.FtrlOptimizer(0.1),
}


def placement_items(rng, ps_device):
    """The operations made under the placement function, in order."""
    items, floats = [], []
    pinned = [ps_device, ps_device + "/task:0", "/job:other",
              "/job:worker/task:1", "/device:CPU:0"]
    for i in range(rng.randint(3, 9)):
        kind = rng.choice(["variable"] * 6 + ["operation", "partitioned"])
        item = {"kind": kind, "name": "%s%d" % (kind[0], i)}
        if kind != "operation":
            item["shape"] = [rng.randint(2, 8)
                             for _ in range(rng.randint(1, 3))]
        if kind == "partitioned":
            item["num_shards"] = rng.randint(1, 4)
        if kind == "variable":
            item["dtype"] = rng.choice(["float32", "float32", "float64",
                                        "int32"])
            if rng.random() < 0.2:
                item["device"] = rng.choice(pinned)
            elif item["dtype"] != "int32":
                floats.append(item["name"])
        items.append(item)
    if rng.random() < 0.5:
        items.insert(rng.randrange(len(items) + 1), {"kind": "global_step"})
    if floats and rng.random() < 0.7:
        items.append({"kind": "optimizer",
                      "optimizer": rng.choice(sorted(SLOT_OPTIMIZERS)),
                      "variables": floats})
    if floats and rng.random() < 0.5:
        items.append({"kind": "moving_average", "variables": floats})
    return items


def place_item(item, variables):
    kind = item["kind"]
    if kind == "global_step":
        return [v1.train.create_global_step().op]
    if kind == "operation":
        return [tf.constant(1.0, name=item["name"]).op]
    if kind == "variable":
        pin = item.get("device")  # None would end the scope
        with v1.device(pin) if pin else contextlib.nullcontext():
            made = v1.get_variable(item["name"], item["shape"],
                                   tf.as_dtype(item["dtype"]),
                                   initializer=v1.zeros_initializer())
        variables[item["name"]] = made
        return [made.op]
    if kind == "partitioned":
        made = v1.get_variable(
            item["name"], item["shape"], initializer=v1.zeros_initializer(),
            partitioner=v1.fixed_size_partitioner(item["num_shards"]))
        return [part.op for part in made]
    known = set(v1.global_variables())
    chosen = [variables[name] for name in item["variables"]]
    if kind == "optimizer":
        SLOT_OPTIMIZERS[item["optimizer"]]().apply_gradients(
            [(tf.zeros_like(x), x) for x in chosen])
    else:
        tf.train.ExponentialMovingAverage(0.9).apply(chosen)
    return [x.op for x in v1.global_variables() if x not in known]


def record_placement(rng, kind, dtype):
    ps_device = rng.choice(["/job:ps", "/job:server"])
    arguments = {"ps_tasks": rng.randint(0, 5), "ps_device": ps_device,
                 "worker_device": "/job:worker"}
    v1.disable_resource_variables()
    with tf.Graph().as_default():
        setter = v1.train.replica_device_setter(**arguments)
        items = placement_items(rng, ps_device)
        operations, variables = [], {}
        with v1.device(setter):
            for item in items:
                operations += place_item(item, variables)
    results = []
    for operation in operations:
        device = tf.DeviceSpec.from_string(operation.device)
        results.append({"name": operation.name, "device": operation.device,
                        "job": device.job, "task": device.task})
    return {"strategy": "round_robin", "arguments": arguments, "status": "OK",
            "places": setter is not None, "items": items, "results": results}
