"""Makes data sets for strategies to distribute."""

from record_strategies import made_input_files, made_input_steps

TOPOLOGIES = [
    {"kind": "OneDevice", "workers": 1, "replicas_per_worker": 1},
    {"kind": "Mirrored", "workers": 1, "replicas_per_worker": 1},
    {"kind": "Mirrored", "workers": 1, "replicas_per_worker": 2},
    {"kind": "Mirrored", "workers": 1, "replicas_per_worker": 3},
    {"kind": "CentralStorage", "workers": 1, "replicas_per_worker": 2},
    {"kind": "MultiWorkerMirrored", "workers": 1, "replicas_per_worker": 2},
    {"kind": "MultiWorkerMirrored", "workers": 2, "replicas_per_worker": 1},
    {"kind": "MultiWorkerMirrored", "workers": 2, "replicas_per_worker": 2},
    {"kind": "MultiWorkerMirrored", "workers": 3, "replicas_per_worker": 1},
    {"kind": "MultiWorkerMirrored", "workers": 3, "replicas_per_worker": 2},
]

WAYS = ["next", "next", "get_next", "optional"]
POLICIES = ["DATA", "AUTO", "OFF"]  # for data that comes from no files
OPERATIONS = 8  # of a scenario


def replicas_of(topology):
    return topology["workers"] * topology["replicas_per_worker"]


def distribute(rng, source, steps, policy=None, **more):
    """Distributes a data set, and reads it up to three times."""
    op = {"op": "distribute_dataset",
          "dataset": {"source": source, "steps": steps}, "by": rng.choice(WAYS)}
    if policy is not None:
        op["dataset"]["policy"] = policy
    if rng.random() < 0.5:
        op["epochs"] = rng.choice([1, 2, 2, 3])
    if rng.random() < 0.1:
        op["limit"] = rng.choice([0, 1, 2, 5])
    return {**op, **more}


def from_function(rng, source, steps, **more):
    return {**distribute(rng, source, steps),
            "op": "distribute_from_function", **more}


def rebatch(rng, topology):
    """Batches of all sizes around the number of replicas, and few data."""
    for _ in range(OPERATIONS):
        batch = made_input_steps.batch_size(rng, replicas_of(topology))
        yield distribute(
            rng, made_input_steps.numbers(rng, batch),
            [["batch", batch, rng.random() < 0.4]], rng.choice(POLICIES))


def steps(rng, topology):
    for _ in range(OPERATIONS):
        source, made = made_input_steps.pipeline(rng, replicas_of(topology))
        yield distribute(rng, source, made, rng.choice(POLICIES))


def special(rng, topology):
    """Sizes that are unknown, no batches, no end, and what is refused."""
    replicas = replicas_of(topology)
    for policy in ("OFF", "DATA", rng.choice(POLICIES)):
        batch = made_input_steps.batch_size(rng, replicas)
        after = made_input_steps.some(
            rng, [["take", 2], ["skip", 1], ["repeat", 2], ["prefetch", 2]])
        yield distribute(rng, made_input_steps.numbers(rng, batch),
                         [["batch", batch, False], ["unknown_batch"], *after],
                         policy)
    yield distribute(rng, {"range": rng.choice([1, 6, 7])}, [],
                     rng.choice(POLICIES))
    for _ in range(3):
        by = rng.choice(WAYS)
        source, made = made_input_steps.endless(rng, replicas, by)
        yield distribute(rng, source, made, rng.choice(POLICIES), by=by,
                         limit=rng.randint(1, 9))
    yield distribute(rng, {"range": 12}, [["batch", rng.randint(1, 9), False]],
                     replication="PER_REPLICA")


def files(rng, topology):
    """Every policy, with lengths and numbers of files that fit it."""
    for policy in ("AUTO", "FILE", "DATA", "OFF"):
        for _ in range(OPERATIONS // 4):
            least = topology["workers"] if policy in ("AUTO", "FILE") else 1
            source = made_input_files.source(rng, least)
            yield distribute(rng, source, made_input_files.steps(
                rng, replicas_of(topology)), policy)


def function(rng, topology):
    """Data sets from a function, which may differ between the workers."""
    replicas = replicas_of(topology)
    for _ in range(OPERATIONS - 3):
        source, made = made_input_steps.from_function(rng, replicas)
        yield from_function(rng, source, made)
    counts = [rng.choice([0, 1, 2, 3, 5, 8, 13])
              for _ in range(topology["workers"])]
    yield from_function(
        rng, {"range": counts},
        [["batch", rng.randint(1, 4), rng.random() < 0.3]])
    if replicas > 1:
        size = replicas * rng.randint(1, 4) + rng.randint(1, replicas - 1)
        yield from_function(
            rng, {"range": 8}, [["batch_per_replica", size, False]])
    by = rng.choice(WAYS)
    source, made = made_input_steps.endless(rng, replicas, by)
    yield from_function(rng, source, made, by=by, limit=rng.randint(1, 9))


def per_replica_batch_size(rng, topology):
    for _ in range(OPERATIONS):
        replicas = rng.randint(1, 8)
        yield {"op": "per_replica_batch_size", "replicas": replicas,
               "global_batch": rng.choice([
                   0, replicas * rng.randint(1, 9), rng.randint(0, 50)])}


def fatal(rng, topology):
    """Scenarios of one operation that breaks the collectives."""
    workers = topology["workers"]
    batch = [["batch", rng.randint(1, 5), rng.random() < 0.3]]
    few = {"files": [made_input_files.numbers(rng, i, 1)
                     for i in range(rng.randint(1, workers - 1))]}
    yield "files_too_few", distribute(rng, few, batch, "FILE")
    if topology["replicas_per_worker"] > 1 or workers > 2:
        return
    yield "auto_too_few_files", distribute(rng, few, batch, "AUTO")
    yield "file_policy_without_files", distribute(
        rng, {"range": rng.randint(0, 9)}, batch, "FILE")


PARTS = {"rebatch": rebatch, "steps": steps, "special": special,
         "files": files, "from_function": function,
         "per_replica_batch_size": per_replica_batch_size}


def scenarios(rng, topology, turn):
    def name(part):
        return "%s_%dx%d/%s_%d" % (
            topology["kind"], topology["workers"],
            topology["replicas_per_worker"], part, turn)

    for part, make in PARTS.items():
        ops = list(make(rng, topology))
        rng.shuffle(ops)
        yield {"name": name(part), "ops": ops}
    if topology["workers"] > 1:
        for part, op in fatal(rng, topology):
            # A limit of 0 reads nothing, and so does not fail.
            yield {"name": name(part), "fatal": True, "ops": [
                {key: x for key, x in op.items() if key != "limit"}]}
