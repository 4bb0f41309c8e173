"""Records small jobs under SyncReplicasOptimizer, as the section on
sync_loop.jsonl of README.md has them."""

import threading
import time

from recording import (SETTLE_LOOKS, SETTLE_SECONDS, STATUS, Place, Waiter,
                       number, tensor)

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
tf.get_logger().setLevel("FATAL")  # it is deprecated: that is known
PATIENCE_SECONDS = 60


def random_job(rng):
    sparse_ids = rng.random() < 0.8  # canonical ones
    variables = []
    for i in range(rng.randint(1, 3)):
        sparse = rng.random() < 0.4
        shape = ([rng.randint(2, 4), rng.randint(1, 2)] if sparse else
                 rng.choice([[], [rng.randint(1, 3)]]))
        variable = {"name": "v%d" % i,
                    "initial": rng.array(shape, "float32"), "sparse": sparse}
        if i > 0 and rng.random() < 0.15:
            variable["no_gradient"] = True
        variables.append(variable)
    needed, replicas = rng.randint(1, 5), rng.randint(1, 5)
    name = rng.choice(["GradientDescent", "Momentum", "Adam"])
    hyper = {"learning_rate": rng.choice([0.5, 0.1, 0.05])}
    if name == "Momentum":
        hyper.update(momentum=rng.choice([0.5, 0.9]),
                     use_nesterov=rng.random() < 0.3)
    elif name == "Adam":
        hyper.update(beta1=rng.choice([0.8, 0.9]),
                     beta2=rng.choice([0.9, 0.999]),
                     epsilon=rng.choice([1e-8, 1e-3]))
    return {
        "replicas_to_aggregate": needed, "total_num_replicas": replicas,
        "num_tokens": rng.choice([-1, -1, max(0, needed - replicas),
                                  needed - replicas, rng.randint(0, 7)]),
        "workers": max(1, replicas + rng.choice([0, 0, 0, 0, -1, 1])),
        "dtype": "float32", "optimizer": {"name": name, "hyper": hyper},
        "moving_average": rng.choice([None, None, 0.5, 0.9, 0.99]),
        "variables": variables, "canonical_input": sparse_ids}


class WorkerGraph:
    """The graph of one worker; the chief's is worker 0's."""

    def __init__(self, place, job, worker):
        self.graph = tf.Graph()
        with self.graph.as_default(), place.container(self.graph):
            self.variables = [
                v1.get_variable(v["name"], initializer=v["initial"],
                                use_resource=True) for v in job["variables"]]
            self.global_step = v1.train.get_or_create_global_step()
            self.feeds = [self.make_feed(v) for v in job["variables"]]
            inner = getattr(v1.train, job["optimizer"]["name"] + "Optimizer")(
                **job["optimizer"]["hyper"])
            self.average = job["moving_average"] and (
                tf.train.ExponentialMovingAverage(job["moving_average"]))
            optimizer = v1.train.SyncReplicasOptimizer(
                inner, job["replicas_to_aggregate"], job["total_num_replicas"],
                variable_averages=self.average or None,
                variables_to_average=self.variables if self.average else None)
            # The local step is this worker's own.
            with tf.name_scope("worker%d" % worker):
                self.train = optimizer.apply_gradients(
                    [(self.gradient(v, feed), variable) for v, feed, variable
                     in zip(job["variables"], self.feeds, self.variables)],
                    self.global_step)
            self.init_tokens = optimizer.get_init_tokens_op(job["num_tokens"])
            self.sync = optimizer.get_chief_queue_runner().enqueue_ops[0]
            self.local_init = optimizer.local_step_init_op
            self.chief_init = optimizer.chief_init_op
            self.local_step = optimizer._local_step
            self.watch(inner, optimizer)
            self.start = v1.global_variables_initializer()

    @staticmethod
    def make_feed(variable):
        if variable["sparse"]:
            width = list(variable["initial"].shape[1:])
            return (v1.placeholder(tf.float32, [None] + width),
                    v1.placeholder(tf.int64, [None]))
        return v1.placeholder(tf.float32, variable["initial"].shape)

    @staticmethod
    def gradient(variable, feed):
        if variable.get("no_gradient"):
            return None
        return tf.IndexedSlices(*feed) if variable["sparse"] else feed

    def watch(self, inner, optimizer):
        """Everything that a state shows, but for the tokens."""
        slots = inner.get_slot_names()
        scalars = {}
        if isinstance(inner, v1.train.AdamOptimizer):
            scalars = dict(zip(["beta1_power", "beta2_power"],
                               inner._get_beta_accumulators()))
        self.state = {
            "global_step": self.global_step,
            "accumulated": [accumulator.num_accumulated() for accumulator, _
                            in optimizer._accumulator_list],
            "variables": self.variables,
            "slots": [{key: inner.get_slot(x, key) for key in slots
                       if inner.get_slot(x, key) is not None}
                      for x in self.variables],
            "scalars": scalars}
        if self.average:
            self.state["averages"] = [self.average.average(x)
                                      for x in self.variables]
        self.queue_size = optimizer._sync_token_queue.size()
        self.dequeue = optimizer._sync_token_queue.dequeue()
        self.many = v1.placeholder(tf.int64, [None])
        self.enqueue = optimizer._sync_token_queue.enqueue_many([self.many])


class Job:
    """A job that runs, one operation at a time."""

    def __init__(self, place, job):
        self.place = place
        self.job = job
        self.graphs = [WorkerGraph(place, job, i)
                       for i in range(job["workers"])]
        self.sessions = [place.session(g.graph) for g in self.graphs]
        self.observers = [place.session(g.graph) for g in self.graphs]
        self.passes = {}  # of workers that wait
        self.loop = None

    def begin(self):
        self.sessions[0].run(self.graphs[0].start)
        for i in range(1, len(self.graphs)):
            self.sessions[i].run(self.graphs[i].local_init)
        self.begin_chief(True)

    def begin_chief(self, tokens):
        self.sessions[0].run(self.graphs[0].chief_init)
        if tokens:
            self.sessions[0].run(self.graphs[0].init_tokens)
        run, graph = self.sessions[0], self.graphs[0]
        self.loop = ChiefLoop(
            run, graph.sync, int(self.observers[0].run(graph.global_step)))

    def train(self, worker, feed):
        run, graph = self.sessions[worker], self.graphs[worker]
        self.passes[worker] = Waiter(lambda: run.run(graph.train.op, feed))

    def replace_session(self, worker):
        """Whether that has cancelled a wait for a token."""
        self.sessions[worker].close()
        waiter = self.passes.pop(worker, None)
        if waiter is not None:
            waiter.join(PATIENCE_SECONDS)
            assert waiter.error is not None, "a cancelled pass has ended well"
        self.sessions[worker] = self.place.session(self.graphs[worker].graph)
        return waiter is not None

    def stop_chief(self):
        cancelled = self.replace_session(0)
        if self.loop is not None:
            self.loop.join(PATIENCE_SECONDS)
            assert not self.loop.is_alive(), "the chief's loop goes on"
            self.loop = None
        return cancelled

    def look(self):
        graph, run = self.graphs[0], self.observers[0]
        seen = run.run(graph.state)
        seen["size"] = run.run(graph.queue_size)
        seen["local_steps"] = [
            int(o.run(g.local_step))
            for o, g in zip(self.observers, self.graphs)]
        for worker, waiter in list(self.passes.items()):
            if waiter.is_alive():
                continue
            assert waiter.error is None, waiter.error
            del self.passes[worker]
        seen["blocked"] = sorted(self.passes)
        return seen

    def at_rest(self, seen):
        """Whether the chief's loop waits in its takes, for all that is known."""
        if self.loop is None:
            return True
        assert self.loop.error is None, self.loop.error
        return self.loop.steps == int(seen["global_step"])

    def settle(self):
        looks = []
        end = time.monotonic() + PATIENCE_SECONDS
        while True:
            time.sleep(SETTLE_SECONDS)
            seen = self.look()
            looks.append(repr(seen))
            same = len(set(looks[-SETTLE_LOOKS:])) == 1
            if len(looks) >= SETTLE_LOOKS and same and self.at_rest(seen):
                return seen
            assert time.monotonic() < end, "does not come to rest"

    def tokens(self, seen):
        """The contents of the queue, which are put back."""
        if self.passes:
            return []  # a worker waits, so it is empty
        run, graph = self.observers[0], self.graphs[0]
        taken = [int(run.run(graph.dequeue)) for _ in range(seen["size"])]
        run.run(graph.enqueue, {graph.many: taken})
        return taken

    def show(self):
        seen = self.settle()
        variables = self.job["variables"]
        counts = iter(seen["accumulated"])
        state = {
            "global_step": int(seen["global_step"]),
            "local_steps": seen["local_steps"], "blocked": seen["blocked"],
            "tokens": self.tokens(seen),
            "accumulated": [None if v.get("no_gradient") else int(next(counts))
                            for v in variables],
            "variables": [tensor(x) for x in seen["variables"]],
            "slots": [{key: tensor(x) for key, x in each.items()}
                      for each in seen["slots"]],
            "averages": None}
        if "averages" in seen:
            state["averages"] = [tensor(x) for x in seen["averages"]]
        if seen["scalars"]:
            state["scalars"] = {key: number(x)
                                for key, x in seen["scalars"].items()}
        return state


class ChiefLoop(threading.Thread):
    """Runs the sync op until its session is closed."""

    def __init__(self, session, sync, step):
        super().__init__(daemon=True)
        self.session = session
        self.sync = sync
        self.steps = step  # as many are done, and the next one is on its way
        self.error = None
        self.start()

    def run(self):
        while True:
            try:
                self.session.run(self.sync)
            except (tf.errors.CancelledError, RuntimeError):
                return  # closed
            except tf.errors.OpError as error:
                self.error = error
                return
            self.steps += 1


def random_gradients(rng, job, graph):
    """The gradients in the form of the trace, and the feeds."""
    written, feed = [], {}
    for variable, place in zip(job["variables"], graph.feeds):
        shape = list(variable["initial"].shape)
        if variable.get("no_gradient"):
            written.append(None)
        elif variable["sparse"]:
            ids = rng.sample(range(shape[0]), rng.randint(0, shape[0]))
            if job["canonical_input"]:
                ids.sort()
            elif ids:
                ids.append(rng.choice(ids))
            values = rng.array([len(ids)] + shape[1:], "float32")
            feed.update({place[0]: values,
                         place[1]: np.array(ids, dtype=np.int64)})
            written.append({"indices": ids, "values": tensor(values),
                            "dense_shape": None})
        else:
            feed[place] = rng.array(shape, "float32")
            written.append(tensor(feed[place]))
    return written, feed


def random_operation(rng, running):
    """The next possible operation; sometimes None if no worker can make a pass."""
    chief = running.loop is not None
    free = [worker for worker in range(running.job["workers"])
            if worker not in running.passes and (chief or worker > 0)]
    others = ["restart_worker"] * (running.job["workers"] > 1)
    if chief:
        others += ["stop_chief", "reinit_chief"]
    else:
        others += ["reinit_chief"] * 4
    if free and (rng.random() < 0.85 or not others):
        return {"op": "pass", "worker": rng.choice(free)}
    if not free and rng.random() < 0.3:
        return None
    op = {"op": rng.choice(others)}
    if op["op"] == "restart_worker":
        op["worker"] = rng.randint(1, running.job["workers"] - 1)
    elif op["op"] == "reinit_chief":
        op["tokens"] = rng.random() < 0.5
    return op


def perform(rng, running, op):
    if op["op"] == "pass":
        worker = op["worker"]
        op["gradients"], feed = random_gradients(rng, running.job,
                                                 running.graphs[worker])
        running.train(worker, feed)
    elif op["op"] == "restart_worker":
        worker = op["worker"]
        op["cancelled"] = running.replace_session(worker)
        running.sessions[worker].run(running.graphs[worker].local_init)
    else:
        op["cancelled"] = running.stop_chief()
        if op["op"] == "reinit_chief":
            running.begin_chief(op["tokens"])


def record_sync_loop(rng, kind, dtype):
    job = random_job(rng)
    ops = []
    with Place() as place:
        try:
            running = Job(place, job)
        except ValueError as error:
            ops.append({"op": "start", "status": STATUS[type(error).__name__]})
            running = None
        if running is not None:
            running.begin()
            ops.append({"op": "state", "state": running.show()})
            for _ in range(rng.randint(6, 30)):
                op = random_operation(rng, running)
                if op is None:
                    break
                perform(rng, running, op)
                op["state"] = running.show()
                ops.append(op)
    for variable in job["variables"]:
        variable["initial"] = tensor(variable["initial"])
    return {**job, "ops": ops}
