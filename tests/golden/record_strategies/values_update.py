"""Updates of strategy_values."""


def scale_add(copy, factor, summand):
    copy.assign(copy * factor)
    copy.assign_add(summand)


CHANGES = {
    "assign": lambda copy, x: copy.assign(x),
    "assign_add": lambda copy, x: copy.assign_add(x),
    "assign_sub": lambda copy, x: copy.assign_sub(x),
    "scale_add": scale_add,
}

AT_PLACES = {"double": lambda x: x + x, "add": lambda x, y: x + y}


def changed(name):
    """A function of a copy and its arguments that returns the new copy."""
    def fn(copy, *args):
        if name == "nothing":
            return None
        CHANGES[name](copy, *args)
        return copy.read_value()

    return fn


class Update:
    """The operations that change variables, or run at their places."""

    def update(self, op):
        with self.strategy.scope():
            result = self.strategy.extended.update(
                self.values.variables[op["variable"]], changed(op["fn"]),
                tuple(self.values.into(x) for x in op["args"]),
                group=op["group"])
        if op["group"] and op["fn"] == "nothing":
            return {}  # the result is an operation, or None
        return self.result(result)

    def update_in_replica(self, op):
        variable = self.values.variables[op["variable"]]
        return self.result(self.strategy.run(
            lambda *args: self.strategy.extended.update(
                variable, changed(op["fn"]), args, group=op["group"]),
            tuple(self.values.into(x) for x in op["args"])))

    def update_non_slot(self, op):
        extended = self.strategy.extended
        variables = [self.values.variables[name] for name in op["variables"]]
        with self.strategy.scope():
            return self.result(extended.update_non_slot(
                extended.non_slot_devices(variables), AT_PLACES[op["fn"]],
                tuple(self.values.into(x) for x in op["args"]),
                group=op["group"]))
