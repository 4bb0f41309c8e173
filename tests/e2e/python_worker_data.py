"""The examples of python_worker.py, and which of them each batch has."""

import numpy as np

EXAMPLES, FEATURES, CLASSES = 4000, 20, 5
MASK = 2**64 - 1


class SplitMix:
    def __init__(self, state):
        self.state = state & MASK

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    def below(self, bound):
        limit = MASK - MASK % bound
        number = self.next()
        while number >= limit:
            number = self.next()
        return number % bound


class Schedule:
    """Which examples each batch of a worker has."""

    def __init__(self, n, job, num_workers, shard):
        self.n, self.seed, self.batch_size = n, job.seed, job.batch_size
        self.num_workers, self.shard = num_workers, shard
        self.per_epoch = n // (num_workers * job.batch_size)
        self.epoch, self.order = -1, None

    def batch(self, number):
        epoch, place = divmod(number, self.per_epoch)
        if epoch != self.epoch:
            order = list(range(self.n))
            x = SplitMix(self.seed).next()
            stream = SplitMix(SplitMix(x + epoch).next())
            for i in range(self.n, 1, -1):
                j = stream.below(i)
                order[i - 1], order[j] = order[j], order[i - 1]
            self.epoch, self.order = epoch, order[self.shard :: self.num_workers]
        first = place * self.batch_size
        return self.order[first : first + self.batch_size]


def make_data():
    random = np.random.default_rng(7)
    truth = random.normal(size=(FEATURES, CLASSES))
    x = random.normal(size=(EXAMPLES, FEATURES)).astype("<f4")
    return x, np.argmax(x @ truth, axis=1)
