"""Makes scenarios of variables: one variable in each, which is written and read
in every context, in random order."""

from record_strategies.variable_numbers import (
    leaf, random_shape, slices, small, wild)

TOPOLOGIES = [
    {"kind": kind, "workers": workers, "replicas_per_worker": each}
    for kind, workers, each in (
        ("OneDevice", 1, 1), ("Mirrored", 1, 2), ("Mirrored", 1, 3),
        ("CentralStorage", 1, 2), ("MultiWorkerMirrored", 2, 1),
        ("MultiWorkerMirrored", 2, 2), ("MultiWorkerMirrored", 3, 1))]

SYNCHRONIZATIONS = ("AUTO", "ON_WRITE", "ON_READ")
AGGREGATIONS = ("NONE", "SUM", "MEAN", "ONLY_FIRST_REPLICA")
FLOATS = ("float16", "float32", "float64")
INTEGERS = ("int32", "int64")
METHODS = ("assign", "assign_add", "assign_sub")
SCATTERS = ("scatter_add", "scatter_sub", "scatter_mul", "scatter_div",
            "scatter_min", "scatter_max", "scatter_update")
READS = ("replica", "replica_plus_one", "scope", "outside", "read_var",
         "update")


class Maker:
    """Makes the operations of a scenario with one variable."""

    def __init__(self, rng, topology, synchronization, aggregation, dtype):
        self.rng = rng
        self.count = topology["workers"] * topology["replicas_per_worker"]
        self.alone = topology["kind"] == "OneDevice"
        self.on_read = synchronization == "ON_READ"
        self.dtype = dtype
        self.shape = random_shape(rng, dtype, topology)
        self.variable = {
            "name": "v", "initial": self.small(),
            "synchronization": synchronization, "aggregation": aggregation,
            "trainable": rng.choice([None, None, None, True, False])}

    def create(self):
        return {"op": "create", "variable": self.variable}

    def small(self):
        return small(self.rng, self.dtype, self.shape)

    def leaf(self):
        return leaf(self.rng, self.dtype, self.shape)

    def plain(self):
        return {"tensor": self.leaf()}

    def per_replica(self):
        if self.alone:
            return self.plain()
        return {"per_replica": [self.leaf() for _ in range(self.count)]}

    def op(self, name, **fields):
        return {"op": name, "variable": "v", **fields}

    def assign(self, context, value, method=None, **fields):
        method = method or self.rng.choice(METHODS)
        return self.op("assign", method=method, context=context, **fields,
                       value=value)

    def across(self):
        return self.rng.choice(["scope", "outside"])

    def python(self):
        """A number that every replica is given as the same object."""
        made = self.assign("replica", {"python": self.rng.randint(1, 5)},
                           self.rng.choice(METHODS[:2]))
        return {**made, "object_identity": True}

    def writes(self):
        """A write of every sort, of which some are left out."""
        rng = self.rng
        made = [self.assign("replica", self.per_replica(), method)
                for method in METHODS]
        made += [self.assign("replica", self.per_replica(), graph=True),
                 self.assign("replica", self.plain(),
                             **({"graph": True} if rng.random() < 0.3
                                else {})),
                 self.assign("merge", self.plain())]
        made += [self.assign(self.across(), self.plain(), method)
                 for method in METHODS]
        made += [self.assign("update", self.plain(), method)
                 for method in METHODS]
        if not self.alone:
            made += [self.assign(self.across(), self.per_replica(),
                                 rng.choice(("assign",) + METHODS)),
                     self.assign("update", self.per_replica()),
                     self.assign("update", {"mirrored": self.leaf()}),
                     self.assign("update_whole", self.plain())]
        made = [each for each in made if rng.random() < 0.8]
        if not self.shape and rng.random() < 0.6:
            made.append(self.python())
        rng.shuffle(made)
        return made

    def read(self, context=None):
        choices = READS
        if self.on_read and not self.alone:
            choices += ("sync_on_read",)
        return self.op("read", context=context or self.rng.choice(choices))

    def scatters(self):
        if self.alone or not self.shape:
            return []
        methods = [each for each in SCATTERS if self.rng.random() < 0.5
                   and (each != "scatter_div" or self.dtype in FLOATS)]
        self.rng.shuffle(methods)
        return [self.scatter(method) for method in methods]

    def scatter(self, method):
        """A scatter; a ring breaks where the types of indices differ."""
        index_dtype = self.rng.choice(["int32", "int64"])
        return self.op("scatter", method=method, context="replica", value={
            "per_replica": [slices(self.rng, self.dtype, self.shape, method,
                                   index_dtype)
                            for _ in range(self.count)]})

    def operations(self):
        made = [self.create()]
        for write in self.writes():
            made.append(write)
            if self.rng.random() < 0.5:
                made.append(self.read())
        made += [self.read(context)
                 for context in ("replica", "scope", "read_var")]
        if not self.alone:
            made.append(self.op("reduce_variable", reduce_op=self.rng.choice(
                ["SUM", "MEAN"])))
            if self.on_read:
                made.append(self.read("sync_on_read"))
        made.append(self.op("local_copies"))
        made += self.scatters()
        return made + [
            self.op("save"),
            self.op("restore", value=wild(self.rng, self.dtype, self.shape)),
            self.read("replica"), self.op("save")]


def creations(rng, topology):
    """Variables of every sort, also where each worker offers another value."""
    def create(name, **fields):
        return {"op": "create", "variable": {"name": name, **fields}}

    def offered(dtype):
        shape = random_shape(rng, dtype, topology)
        return {"per_worker": [wild(rng, dtype, shape)
                               for _ in range(topology["workers"])]}

    sorts = [("AUTO", None), ("ON_WRITE", None), ("ON_READ", None),
             ("ON_READ", True), ("ON_WRITE", False)]
    rng.shuffle(sorts)
    made = [create("t%d" % i, initial=small(rng, rng.choice(FLOATS), []),
                   synchronization=synchronization,
                   aggregation=rng.choice(AGGREGATIONS), trainable=trainable)
            for i, (synchronization, trainable) in enumerate(sorts)]
    dtypes = list(FLOATS + INTEGERS)
    rng.shuffle(dtypes)
    made += [create("i%d" % i, initial=offered(dtype))
             for i, dtype in enumerate(dtypes)]
    made.append(create("r", synchronization="ON_READ", aggregation="SUM",
                       initial=offered(rng.choice(dtypes))))
    return made


def sorts_of_variables(topology):
    """Synchronization, aggregation, types, and whether it is one to refuse."""
    alone = topology["kind"] == "OneDevice"
    for synchronization in SYNCHRONIZATIONS:
        for aggregation in AGGREGATIONS:
            yield synchronization, aggregation, FLOATS, False
            refused = aggregation == "MEAN"
            if alone or not refused:
                yield synchronization, aggregation, INTEGERS, False
            if refused:
                yield synchronization, aggregation, INTEGERS, True
    for aggregation in AGGREGATIONS:
        if alone:
            yield "NONE", aggregation, FLOATS, False
        yield "NONE", aggregation, FLOATS, True


def scenarios(rng, topology, turn):
    """One scenario of each sort of variable, and one that makes many.

    Most strategies refuse an integer mean, and a variable without
    synchronization: such a scenario only makes the variable. OneDevice and
    CentralStorage refuse neither.
    """
    prefix = "%s_%dx%d/" % (topology["kind"], topology["workers"],
                            topology["replicas_per_worker"])
    suffix = "_round%d" % turn if turn else ""
    number = 0
    for synchronization, aggregation, dtypes, refused in sorts_of_variables(
            topology):
        dtype = rng.choice(dtypes)
        maker = Maker(rng, topology, synchronization, aggregation, dtype)
        number += not refused
        only_made = refused and topology["kind"] not in (
            "OneDevice", "CentralStorage")
        yield {"name": "%s%s_%s_%s_%s%s" % (
            prefix, synchronization, aggregation, dtype,
            "refused" if refused else number, suffix),
            "ops": [maker.create()] if only_made else maker.operations()}
    yield {"name": prefix + "create" + suffix,
           "ops": creations(rng, topology)}
