"""Shared by record.py and its parts: the form of numbers, random inputs,
and calls of TensorFlow that may wait."""

import itertools
import os
import random
import threading
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

v1 = tf.compat.v1
SETTLE_SECONDS = 0.03  # between two checks of the waiting requests
SETTLE_LOOKS = 3  # with the same result, then everything is at rest

STATUS = {
    "InvalidArgumentError": "INVALID_ARGUMENT",
    "OutOfRangeError": "OUT_OF_RANGE",
    "CancelledError": "CANCELLED",
    "FailedPreconditionError": "FAILED_PRECONDITION",
    "InternalError": "INTERNAL",
    "NotFoundError": "NOT_FOUND",
    "ValueError": "INVALID_ARGUMENT",
    "TypeError": "INVALID_ARGUMENT",
    "IndexError": "INVALID_ARGUMENT",
    "ZeroDivisionError": "INVALID_ARGUMENT",
}
REFUSALS = (tf.errors.OpError, ValueError, TypeError, IndexError,
            ZeroDivisionError)


def status_of(error):
    return STATUS.get(type(error).__name__, "UNKNOWN")


def number(x):
    """The shortest number that reads back as x in its own type."""
    if np.isnan(x):
        return "nan"
    if np.isinf(x):
        return "inf" if x > 0 else "-inf"
    return float(str(x))


def tensor(array):
    array = np.asarray(array)
    return {"shape": list(array.shape), "data": [number(x) for x in array.flat]}


def options():
    made = v1.ConfigProto(intra_op_parallelism_threads=1,
                          inter_op_parallelism_threads=1)
    made.graph_options.optimizer_options.opt_level = -1
    made.graph_options.rewrite_options.disable_meta_optimizer = True
    return made


def session(graph):
    return v1.Session(graph=graph, config=options())


class Place:
    """Where a scenario's state is: a container on a server that outlives
    sessions, so that the calls of one can be cancelled by closing it.

    Graphs are built within container().
    """

    server = None
    numbers = itertools.count()

    def __init__(self):
        if Place.server is None:
            Place.server = v1.train.Server.create_local_server(options())
        self.name = "scenario%d" % next(Place.numbers)
        self.sessions = []

    def container(self, graph):
        return graph.container(self.name)

    def session(self, graph):
        made = v1.Session(Place.server.target, graph=graph, config=options())
        self.sessions.append(made)
        return made

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        for each in self.sessions:
            each.close()
        v1.Session.reset(Place.server.target, [self.name])


class Random(random.Random):
    """Random numbers and arrays for scenarios."""

    def scale(self):
        return 10.0 ** self.uniform(-2, 2)

    def array(self, shape, dtype, scale=1.0):
        values = [float("%.4g" % (self.gauss(0, 1) * scale))
                  if self.random() > 0.1 else 0.0
                  for _ in range(int(np.prod(shape, dtype=int)))]
        return np.array(values).astype(dtype).reshape(shape)

    def shape(self, most=4):
        rank = self.choice([1, 2, 2])
        return [self.randint(1, most) for _ in range(rank)]

    def four_digits(self, low, high):
        return float("%.4g" % (10.0 ** self.uniform(low, high)))


class Waiter(threading.Thread):
    """A call that may wait, in a thread of its own."""

    def __init__(self, call, session=None):
        super().__init__(daemon=True)
        self.call = call
        self.session = session  # to be closed, and so the call cancelled
        self.value = None
        self.error = None
        self.reported = False
        self.start()

    def run(self):
        try:
            self.value = self.call()
        except REFUSALS as error:
            self.error = error

    def outcome(self, key, write):
        if self.error is not None:
            return {"status": status_of(self.error)}
        return {"status": "OK", key: write(self.value)}


class Waiting:
    """The requests of a scenario that can wait, by id."""

    def __init__(self, key, write, probe):
        self.key = key
        self.write = write
        self.probe = probe
        self.waiters = {}

    def settle(self, at_least=SETTLE_LOOKS):
        """Waits until everything that an operation releases has come back.

        Each look takes as long as a call in a thread of its own, so that a
        loaded machine is given more time.
        """
        looks = []
        while len(looks) < at_least or len(set(looks[-SETTLE_LOOKS:])) > 1:
            Waiter(self.probe).join()
            time.sleep(SETTLE_SECONDS)
            looks.append(sum(w.is_alive() for w in self.waiters.values()))

    def begin(self, session, *fetch_and_feed):
        """Starts a call in a session of its own, whose first call takes long."""
        self.waiters[len(self.waiters) + 1] = Waiter(
            lambda: session.run(*fetch_and_feed), session)
        self.settle(3 * SETTLE_LOOKS)
        return len(self.waiters)

    def pending(self):
        """The ids that wait."""
        return [identity for identity, waiter in sorted(self.waiters.items())
                if waiter.is_alive()]

    def cancel(self, identity):
        self.waiters[identity].session.close()

    def answer(self, identity):
        waiter = self.waiters[identity]
        if waiter.is_alive():
            return {"status": "PENDING"}
        waiter.reported = True
        return waiter.outcome(self.key, self.write)

    def completed(self, first=None):
        """The requests that returned since, `first` before all others."""
        self.settle()
        done = []
        for identity, waiter in sorted(self.waiters.items(),
                                       key=lambda x: (x[0] != first, x[0])):
            if waiter.is_alive() or waiter.reported:
                continue
            waiter.reported = True
            done.append({"id": identity,
                         **waiter.outcome(self.key, self.write)})
        return done
