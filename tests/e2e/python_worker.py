#!/usr/bin/env python3
"""A worker in Python: softmax regression, written from proto/README.md alone.

Usage: python_worker.py GENERATED [--die_when_selected STEP] [--clock_ahead S]
                        [--tls_dir DIR]

GENERATED is the folder with the classes that protoc has made of the protos.
TF_CONFIG names the task. Exit codes are those of the built-in worker.
"""

import argparse
import faulthandler
import json
import os
import sys
import threading
import time

import grpc
import numpy as np

from python_worker_data import CLASSES, EXAMPLES, FEATURES, Schedule, make_data


class JobEnd(Exception):
    """The worker ends with this exit code."""

    def __init__(self, code, reason=""):
        super().__init__(reason)
        self.code = code


class JoinAgain(Exception):
    """The membership has ended, the job has not."""


def newest_incarnation(error):
    """Which a refusal of Register names; 0: none."""
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            return pb.detail.StatusDetail.FromString(value).newest_incarnation
    return 0


def channel_to(address, options, tls_dir):
    """With tls_dir, uses mutual TLS; the host must be in the peer's certificate."""
    if not tls_dir:
        return grpc.insecure_channel(address, options)

    def read(name):
        with open(os.path.join(tls_dir, name), "rb") as file:
            return file.read()

    credentials = grpc.ssl_channel_credentials(
        root_certificates=read("ca.crt"),
        private_key=read("tls.key"),
        certificate_chain=read("tls.crt"),
    )
    return grpc.secure_channel(address, credentials, options)


class Member:
    """The chief's side of a worker: registration, heartbeats, plan."""

    def __init__(self, cluster, index, clock_ahead, tls_dir):
        self.clock_ahead = clock_ahead  # seconds, for a test
        options = [
            ("grpc.max_send_message_length", -1),
            ("grpc.max_receive_message_length", -1),
        ]
        chief = (cluster.get("chief") or cluster["worker"])[0]
        self.chief = channel_to(chief, options, tls_dir)
        self.servers = [channel_to(a, options, tls_dir) for a in cluster["ps"]]
        self.index = index
        self.incarnation = 0
        self.progress = pb.progress.WorkerProgress(activity="starts")
        self.end = None  # an exception, once a heartbeat has brought it
        self.state = None

    # A call without wait_for_ready fails at once while the channel reconnects.
    # Between such calls gRPC's Python polls the connection only every 5 s, and a
    # reconnection needs several polls.
    def call(self, method, request, reply, timeout=10, channel=None):
        return (channel or self.chief).unary_unary(
            f"/lockstep.v1.{method}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=reply.FromString,
        )(request, timeout=timeout, wait_for_ready=True)

    def identity(self):
        return pb.identity.Identity(
            job_id=self.job_id,
            task_type="worker",
            task_index=self.index,
            incarnation=self.incarnation,
        )

    def ask_chief(self, method, request, reply):
        while True:
            try:
                return self.call(method, request, reply, timeout=2)
            except grpc.RpcError as error:
                if error.code() == grpc.StatusCode.ABORTED:
                    raise JoinAgain(error.details())
                newest = newest_incarnation(error)
                if newest > 0 and request.identity.job_id == "":
                    self.incarnation = newest + 1
                    request.identity.incarnation = self.incarnation
                elif error.code() not in TRANSIENT:
                    raise JobEnd(1, error.details())
            time.sleep(0.1)

    def register(self):
        self.job_id, self.end = "", None
        now = time.time_ns() // 1000 + self.clock_ahead * 1_000_000
        self.incarnation = max(now, self.incarnation + 1)
        self.joined = self.ask_chief(
            "CoordinatorService/Register",
            pb.coordinator.RegisterRequest(
                identity=self.identity(),
                protocol_version=pb.identity.PROTOCOL_VERSION,
                program_version="python",
            ),
            pb.coordinator.RegisterResponse,
        )
        if self.joined.taken_out:
            raise JobEnd(3, self.joined.taken_out)
        self.job_id = self.joined.job_id
        say(f"registered with incarnation {self.incarnation}")
        threading.Thread(target=self.heartbeats, daemon=True).start()

    def heartbeats(self):
        incarnation = self.incarnation
        interval = self.joined.job.heartbeat_interval.ToTimedelta()
        answered = said = time.monotonic()
        while self.end is None and incarnation == self.incarnation:
            request = pb.coordinator.HeartbeatRequest(
                identity=self.identity(),
                progress=self.progress,
                protocol_version=pb.identity.PROTOCOL_VERSION,
                workers=self.joined.workers,
            )
            try:
                answer = self.call(
                    "CoordinatorService/Heartbeat",
                    request,
                    pb.coordinator.HeartbeatResponse,
                    timeout=2,
                )
                answered = time.monotonic()
                self.follow(answer)
            except (JobEnd, JoinAgain) as ended:  # of a call within follow()
                self.end = ended
            except grpc.RpcError as error:
                silence = time.monotonic() - answered
                if time.monotonic() - said > 5:
                    said = time.monotonic()
                    say(f"no heartbeat was answered for {silence:.1f} s: "
                        f"{error.code().name}: {error.details()}")
                if error.code() == grpc.StatusCode.ABORTED:
                    self.end = JoinAgain(error.details())
                elif error.code() not in TRANSIENT:
                    self.end = JobEnd(1, error.details())
                elif silence > self.joined.job.max_wait.ToTimedelta().total_seconds():
                    self.end = JobEnd(129, "the chief is gone")
            time.sleep(interval.total_seconds())

    def follow(self, answer):
        self.state = answer.state
        ends = {
            pb.coordinator.JOB_DONE: 0,
            pb.coordinator.JOB_FAILED: 1,
            pb.coordinator.JOB_STOPPED: 3 if answer.hold else 143,
        }
        if answer.state in ends:
            self.end = JobEnd(ends[answer.state], answer.reason)
        elif answer.model_wanted:
            self.describe()

    def describe(self):
        variables = [
            pb.model.VariableDescription(
                name="weights",
                shape=[FEATURES, CLASSES],
                dtype="float32",
                initializer=pb.model.GLOROT_UNIFORM,
            ),
            pb.model.VariableDescription(
                name="bias",
                shape=[CLASSES],
                dtype="float32",
                initializer=pb.model.CONSTANT,
            ),
        ]
        request = pb.coordinator.DescribeModelRequest(
            identity=self.identity(), variables=variables
        )
        self.ask_chief(
            "CoordinatorService/DescribeModel",
            request,
            pb.coordinator.DescribeModelResponse,
        )

    def plan(self):
        request = pb.coordinator.GetPlanRequest(identity=self.identity())
        while True:
            plan = self.ask_chief(
                "CoordinatorService/GetPlan", request, pb.coordinator.GetPlanResponse
            )
            if plan.ready:
                return plan
            if self.end:
                raise self.end

    def ask_server(self, server, method, request, reply):
        while True:
            if self.end:
                raise self.end
            call = self.servers[server].unary_unary(
                f"/lockstep.v1.{method}",
                request_serializer=type(request).SerializeToString,
                response_deserializer=reply.FromString,
            ).future(request, timeout=10, wait_for_ready=True)
            while not call.done() and not self.end:
                try:
                    call.result(timeout=0.05)
                except (grpc.FutureTimeoutError, grpc.RpcError):
                    pass
            if self.end:
                call.cancel()
                raise self.end
            if call.code() == grpc.StatusCode.OK:
                return call.result()
            if call.code() == grpc.StatusCode.FAILED_PRECONDITION:
                self.refused(call.details())
            repeated = call.code() == grpc.StatusCode.ABORTED
            if call.code() not in TRANSIENT and not repeated:
                raise JobEnd(1, call.details())
            time.sleep(0.1)

    def refused(self, why):
        """Waits for the job's end; joins again if it goes on."""
        deadline = 2 * self.joined.job.lease.ToTimedelta().total_seconds()
        until = time.monotonic() + deadline
        while time.monotonic() < until:
            if self.end:
                raise self.end
            time.sleep(0.05)
        raise JoinAgain(why)

    def leave(self, reason):
        try:
            self.call(
                "CoordinatorService/Leave",
                pb.coordinator.LeaveRequest(
                    identity=self.identity(),
                    reason=reason,
                    cause=pb.coordinator.LEAVE_CANNOT_TAKE_PART,
                ),
                pb.coordinator.LeaveResponse,
                timeout=2,
            )
        except grpc.RpcError:
            pass  # the chief finds out by the lease


class Loop:
    """Strict mode's steps."""

    def __init__(self, member, die_when_selected):
        self.member, self.die_when_selected = member, die_when_selected
        self.job = member.joined.job
        self.x, self.y = make_data()
        self.schedule = Schedule(
            EXAMPLES, self.job, member.joined.num_workers, member.joined.data_shard
        )
        member.describe()
        plan = member.plan()
        self.parts = [
            [p for p in plan.parts if p.server == server]
            for server in range(len(member.servers))
        ]
        for parts in self.parts:
            parts.sort(key=lambda part: part.index)
        self.values = [
            np.zeros(int(np.prod(v.shape)), dtype="<f4") for v in plan.variables
        ]

    def each_server(self):
        return ((i, parts) for i, parts in enumerate(self.parts) if parts)

    def range_of(self, parts):
        return pb.parameter.PartRange(first_part=0, num_parts=len(parts))

    def pull(self, step):
        steps = set()
        for server, parts in self.each_server():
            answer = self.member.ask_server(
                server,
                "ParameterService/Pull",
                pb.parameter.PullRequest(
                    identity=self.member.identity(),
                    parts=self.range_of(parts),
                    step=step,
                    server=server,
                ),
                pb.parameter.PullResponse,
            )
            steps.add(answer.header.step)
            payload, at = np.frombuffer(answer.payload, dtype="<f4"), 0
            for part in parts:
                values = payload[at : at + part.count]
                self.values[part.variable][part.offset : part.offset + part.count] = (
                    values
                )
                at += part.count
        return steps == {step}

    def compute(self, number):
        batch = self.schedule.batch(number)
        x, y = self.x[batch], self.y[batch]
        weights = self.values[0].reshape(FEATURES, CLASSES)
        logits = x @ weights + self.values[1]
        logits -= logits.max(axis=1, keepdims=True)
        p = np.exp(logits)
        p /= p.sum(axis=1, keepdims=True)
        rows = np.arange(len(y))
        loss = float(-np.log(p[rows, y]).mean())
        p[rows, y] -= 1
        p /= len(y)
        self.gradients = [(x.T @ p).ravel().astype("<f4"), p.sum(axis=0).astype("<f4")]
        progress = self.member.progress
        progress.passes += 1
        progress.computed += 1
        progress.examples += len(y)
        progress.loss = loss

    def push(self, step, number, slot, attempt):
        """All servers at once, so that the order does not matter."""
        failures = []

        def push_to(server, parts):
            header = pb.parameter.PushHeader(
                identity=self.member.identity(),
                parts=self.range_of(parts),
                local_step=step,
                slot=slot,
                attempt=attempt,
                server=server,
            )
            setattr(header, "pass", number)
            payload = b"".join(
                self.gradients[part.variable][
                    part.offset : part.offset + part.count
                ].tobytes()
                for part in parts
            )
            request = pb.parameter.PushRequest(header=header, payload=payload)
            try:
                self.member.ask_server(
                    server, "ParameterService/Push", request, pb.parameter.PushResponse
                )
            except Exception as error:
                failures.append(error)

        threads = [
            threading.Thread(target=push_to, args=each) for each in self.each_server()
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]

    def stamped(self, request, step, number, slot, attempt=None):
        request.local_step, request.slot = step, slot
        setattr(request, "pass", number)
        if attempt is not None:
            request.attempt = attempt
        return request

    def take_token(self, step, number, slot, attempt):
        while True:
            request = pb.sync.TakeTokenRequest(identity=self.member.identity())
            token = self.member.ask_server(
                0,
                "SyncService/TakeToken",
                self.stamped(request, step, number, slot, attempt),
                pb.sync.TakeTokenResponse,
            )
            if token.outcome != pb.sync.TOKEN_WAIT:
                return token

    def announce(self, step, number, slot):
        request = pb.sync.AnnounceRequest(identity=self.member.identity())
        answer = self.member.ask_server(
            0,
            "SyncService/Announce",
            self.stamped(request, step, number, slot),
            pb.sync.AnnounceResponse,
        )
        selected = answer.decision == pb.sync.SELECTED
        return answer.attempt if selected else 0

    def run(self):
        a = self.job.replicas_to_aggregate
        n, w = self.member.joined.num_workers, self.member.index
        shares = 1 if n >= a else a // n + (1 if w < a % n else 0)
        number = 0
        token = self.take_token(-1, 0, 0, 0)
        while token.outcome != pb.sync.TOKEN_FINISHED:
            step, slot = token.step, token.slot
            self.member.progress.local_step = step
            if not self.pull(step):
                token = self.take_token(step, number, slot, 0)
                continue
            number += 1
            self.compute(step * shares + slot)
            attempt = token.selected_attempt or self.announce(step, number, slot)
            if attempt > 0 and 0 <= self.die_when_selected <= step:
                say(f"dies as a member of step {step}")
                os._exit(137)
            while True:
                if attempt > 0:
                    self.push(step, number, slot, attempt)
                token = self.take_token(step, number, slot, attempt)
                if token.outcome != pb.sync.TOKEN_REDO:
                    break
                attempt = token.attempt
                say(f"pushes step {step} again, attempt {attempt}")
            if attempt > 0 and not token.not_needed:
                self.member.progress.accepted += 1
            else:
                self.member.progress.stale += 1


def say(text):
    print(text, file=sys.stderr, flush=True)


def work(options):
    config = json.loads(os.environ["TF_CONFIG"])
    member = Member(
        config["cluster"],
        config["task"]["index"],
        options.clock_ahead,
        options.tls_dir,
    )
    while True:
        try:
            member.register()
            Loop(member, options.die_when_selected).run()
            while member.end is None:  # the last checkpoint is being written
                time.sleep(0.05)
            raise member.end
        except JoinAgain as reason:
            say(f"joins again: {reason}")
        except JobEnd as end:
            if end.code == 1 and member.job_id and member.end is None:
                member.leave(str(end))
            say(f"ends with {end.code}: {end}, loss {member.progress.loss:.4f}")
            return end.code


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("generated")
    parser.add_argument("--die_when_selected", type=int, default=-1)
    parser.add_argument("--clock_ahead", type=int, default=0)
    parser.add_argument("--tls_dir", default="")
    options = parser.parse_args()
    # A test gives up after 100 s, and kills a program that hangs.
    faulthandler.dump_traceback_later(90)
    sys.path.insert(0, options.generated)
    global pb

    class pb:
        from lockstep.v1 import coordinator_pb2 as coordinator
        from lockstep.v1 import identity_pb2 as identity
        from lockstep.v1 import model_pb2 as model
        from lockstep.v1 import parameter_pb2 as parameter
        from lockstep.v1 import progress_pb2 as progress
        from lockstep.v1 import status_detail_pb2 as detail
        from lockstep.v1 import sync_pb2 as sync

    sys.exit(work(options))


# CANCELLED: by a server that shuts down.
TRANSIENT = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.CANCELLED,
)

if __name__ == "__main__":
    main()
