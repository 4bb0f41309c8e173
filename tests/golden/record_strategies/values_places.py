"""Devices, colocation, names, contexts and scopes of strategy_values."""

import tensorflow as tf
from tensorflow.python.distribute import distribute_lib

ANOTHER_DEVICE = "CPU:0"  # how a trace names what is no worker device


def outside():
    return tf.Variable(1.0, name="outside")


class Places:
    """The operations about where things are, and what a thread sees."""

    def worker_devices(self):
        if self.topology["kind"] == "Default":
            return (tf.constant(0).device,)
        return self.strategy.extended.worker_devices

    def numbers(self, devices):
        """The numbers of worker devices."""
        base = tf.DeviceSpec.from_string(
            tf.config.list_logical_devices("CPU")[0].name)

        def named(device):
            return base.make_merged_spec(
                tf.DeviceSpec.from_string(device)).to_string()

        known = [named(device) for device in self.worker_devices()]
        return [known.index(named(device)) if named(device) in known
                else ANOTHER_DEVICE for device in devices]

    def devices(self, op):
        extended = self.strategy.extended
        return {"result": {
            "worker_devices": self.numbers(extended.worker_devices),
            "parameter_devices": self.numbers(extended.parameter_devices),
            "num_replicas_in_sync": self.strategy.num_replicas_in_sync}}

    def non_slot_devices(self, op):
        found = self.strategy.extended.non_slot_devices(
            [self.values.variables[name] for name in op["variables"]])
        name = self.values.name_of(found)
        if name is not None:
            return {"result": {"variable": name}}
        return {"result": self.numbers(found)}

    def colocate(self, op):
        form = self.forms[op["variable"]]
        with self.strategy.scope(), \
                self.strategy.extended.colocate_vars_with(
                    self.values.variables[op["with"]]):
            made = self.create(form)
        return {"result": self.numbers(
            copy.device for copy in self.values.local(made))}

    def colocate_foreign(self, op):
        foreign = outside()
        with self.strategy.scope(), \
                self.strategy.extended.colocate_vars_with(foreign):
            tf.Variable(1.0, name="colocated")
        return {"result": None}

    def colocate_no_scope(self, op):
        with self.strategy.extended.colocate_vars_with(
                self.values.variables[op["with"]]):
            tf.Variable(1.0, name="colocated")
        return {"result": None}

    def created_in_scope(self, op):
        name = op["variable"]
        variable = (outside() if name == "outside"
                    else self.values.variables[name])
        return {"result":
                self.strategy.extended.variable_created_in_scope(variable)}

    def value_container(self, op):
        container = self.strategy.extended.value_container
        variable = self.values.variables[op["variable"]]
        result = {"copies": [self.values.name_of(container(copy))
                             for copy in self.values.local(variable)],
                  "variable": self.values.name_of(container(variable))}
        if self.topology["kind"] not in ("Default", "OneDevice"):
            one = {"dtype": "float32", "shape": [], "data": [1.0]}
            value = self.values.into({"per_replica": [
                one] * self.strategy.num_replicas_in_sync})
            if all(container(x) is x for x in value.values):
                result["component"] = "itself"
        return {"result": result}

    def names(self, op):
        copies = self.values.local(self.values.variables[op["variable"]])
        return {"result": [copy.name.split(":")[0] for copy in copies]}

    def seen(self):
        return {
            "has_strategy": tf.distribute.has_strategy(),
            "in_cross_replica_context":
                tf.distribute.in_cross_replica_context(),
            "replica_context": tf.distribute.get_replica_context() is not None,
            "this_strategy": tf.distribute.get_strategy() is self.strategy,
            "update_id": distribute_lib.get_update_replica_id() is not None}

    def contexts(self, op):
        found = {"outside": self.seen(), "update_calls": 0}
        if self.topology["kind"] != "Default":
            with self.strategy.scope():
                found["scope"] = self.seen()
                with self.strategy.scope():
                    found["scope_twice"] = self.seen()

        def merged(strategy):
            found["merge"] = self.seen()

        def run():
            found["run"] = self.seen()
            tf.distribute.get_replica_context().merge_call(merged)

        def update(copy):
            found["update"] = self.seen()
            found["update_calls"] += 1

        self.strategy.run(run)
        with self.strategy.scope():
            self.strategy.extended.update(
                self.values.variables[op["variable"]], update)
        return {"result": found}

    def scope_of_another(self, op):
        value = self.values.into(op["value"])
        variable = self.values.variables[op["variable"]]

        def enter():
            with self.strategy.scope():
                pass

        use = {
            "scope": enter,
            "reduce": lambda: self.strategy.reduce("SUM", value, axis=None),
            "run": lambda: self.strategy.run(lambda x: x, (value,)),
            "update": lambda: self.strategy.extended.update(
                variable, lambda copy, x: copy.assign(x), (value,)),
            "variable": lambda: variable.assign(value),
        }[op["what"]]
        with tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"]).scope():
            use()
        return {"result": None}
