"""Makes files, and the steps of data sets that read them."""

from record_strategies import made_input_steps


def numbers(rng, file, least=0):
    """The numbers of a file, which tell where they come from."""
    return list(range(100 * file, 100 * file + max(least, rng.choice(
        [0, 1, 1, 2, 3, 4, 5, 6, 7, 11]))))


def source(rng, least):
    """At least so many files, read one after the other or in turn."""
    made = {"files": [numbers(rng, i) for i in range(
        rng.choice([least, least + 1, 2 * least, 2 * least + 1]))]}
    if rng.random() < 0.5:
        made["interleave"] = rng.choice([1, 2, 2, 3, 5])
    return made


def steps(rng, replicas):
    made = [["batch", made_input_steps.batch_size(rng, replicas),
             rng.random() < 0.3]]
    if rng.random() < 0.3:
        made = made_input_steps.before_batches(rng) + made
    if rng.random() < 0.5:
        made += made_input_steps.after_batches(rng)
    return made
