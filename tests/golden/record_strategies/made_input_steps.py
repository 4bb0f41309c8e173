"""Makes the steps of data sets that count."""


def some(rng, choices):
    """None, one or two of the choices, in any order."""
    return [list(rng.choice(choices)) for _ in range(rng.choice([0, 1, 1, 2]))]


def batch_size(rng, replicas):
    """Sizes that divide by the replicas or do not, and fewer than replicas."""
    return rng.choice([
        1, max(1, replicas - 1), replicas, replicas + 1, 2 * replicas,
        2 * replicas + 1, rng.choice([2, 3, 5, 7, 11, 13]),
        rng.randint(1, 16)])


def count(rng, batch):
    """Numbers of examples around whole batches."""
    batches = rng.randint(1, 4)
    return rng.choice([
        0, 1, 2, batch - 1, batch, batch + 1, batches * batch,
        batches * batch - 1, batches * batch + 1,
        rng.choice([17, 23, 29, 31, 41]), rng.randint(0, 30)])


def numbers(rng, batch):
    return {rng.choice(["range", "range", "slices"]): count(rng, batch)}


def before_batches(rng):
    """Steps of single examples."""
    return some(rng, [
        ["repeat", rng.choice([0, 1, 2, 3])], ["repeat", 2],
        ["skip", rng.choice([0, 1, 2, 5, 50])], ["filter_even"],
        ["take", rng.choice([0, 1, 3, 7, 50])], ["add", rng.choice([1, 10])],
        ["prefetch", rng.randint(1, 3)]])


def after_batches(rng):
    """Steps of whole batches."""
    return some(rng, [
        ["take", rng.choice([0, 1, 2, 2, 3])], ["prefetch", rng.randint(1, 3)],
        ["skip", rng.choice([0, 1, 1, 2])],
        ["repeat", rng.choice([0, 1, 2, 3])],
        ["add", rng.choice([1, 10, 100])]])


def batches(rng, replicas):
    """A step that makes batches, or two: batches of whole batches."""
    batch = ["batch", batch_size(rng, replicas), rng.random() < 0.4]
    if rng.random() < 0.8:
        return batch[1], [batch]
    # Batches of different sizes do not fit in one.
    inner = ["batch", rng.randint(1, 3), True]
    return inner[1] * batch[1], [inner, *some(rng, [["skip", 1], ["add", 10]]),
                                 batch]


def pipeline(rng, replicas):
    """A source, and steps that end with batches of a size or without one."""
    size, made = batches(rng, replicas)
    return numbers(rng, size), [*before_batches(rng), *made,
                                *after_batches(rng)]


def endless(rng, replicas, by):
    """Repeats without end, before or after batches, or of no data at all.

    Read as optionals there must be a batch: TensorFlow looks for no end where
    it knows a repeat without end, and so fails when it meets one.
    """
    batch = batch_size(rng, replicas)
    source = numbers(rng, batch)
    if by == "optional":
        source = {"range": 2 * batch + rng.randint(3, 9)}
    made = [["batch", batch, rng.random() < 0.4]]
    made.insert(rng.randint(0, 1), ["repeat", None])
    return source, [
        *some(rng, [["skip", 1], ["filter_even"], ["repeat", 2]]), *made,
        *some(rng, [["take", 5], ["skip", 1], ["prefetch", 2], ["add", 10]])]


def from_function(rng, replicas):
    """What a function does with its context: shards, divides, and adds."""
    batch = ["batch", rng.choice([1, 2, 3, 5]), rng.random() < 0.3]
    if rng.random() < 0.3:
        batch = ["batch_per_replica", replicas * rng.randint(1, 4),
                 rng.random() < 0.3]
    made = [*before_batches(rng), batch, *after_batches(rng)]
    if rng.random() < 0.6:
        made.insert(rng.choice([0, 0, rng.randint(0, len(made))]), ["shard"])
    if rng.random() < 0.3:
        made.insert(rng.randint(0, len(made)), ["id_times", 1000])
    if rng.random() < 0.2:
        made.append(["unknown_batch"])
    return {"range": rng.choice([0, 1, 5, 8, rng.randint(0, 40)])}, made
