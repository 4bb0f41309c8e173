"""lockstep.Worker, with real chiefs and servers."""

import os
import signal
import time
import unittest

from local_job import LocalJob
from lockstep import checkpoint
import numpy as np

# w moves to 0 by a tenth of itself a step; nothing is said of b.
SHRINK = """
import sys, os, signal
import numpy as np
import lockstep

worker = lockstep.Worker({"w": np.array([1, -2], np.float32),
                          "b": np.full((1, 3), 5, np.float64)})
for step in worker.steps():
    step.push({"w": step.values["w"]}, loss=float(abs(step.values["w"]).sum()))
    print("pushed", step.number, flush=True)
print("ended")
"""


def tensor(job, name, dtype):
    _, tensors = checkpoint.read(job.path("checkpoints"))
    return tensors[name][2].view(dtype).reshape(tensors[name][1])


# Prints its examples; goes on after the loop.
EPOCHS = """
import numpy as np
import lockstep

worker = lockstep.Worker({"w": np.zeros(1, np.float32)})
for step in worker.steps():
    rows = step.indices(24)
    step.indices(24, ahead=1)
    step.push({"w": np.ones(1, np.float32)})
    print("rows", step.number, len(rows), flush=True)
print("after the loop")
"""


class WorkerTest(unittest.TestCase):

    def test_values_of_the_program_are_trained_and_saved(self):
        with LocalJob(sets=["learning_rate=0.1", "train_steps=5"]) as job:
            job.start_worker(0, SHRINK)
            self.assertEqual(job.wait("worker"), 0, job.log("worker"))
            self.assertEqual(job.wait("chief"), 0, job.log("chief"))
            np.testing.assert_allclose(tensor(job, "w", np.float32),
                                       [0.9**5, -2 * 0.9**5], rtol=1e-6)
            np.testing.assert_array_equal(tensor(job, "b", np.float64),
                                          [[5, 5, 5]])
            self.assertIn("ended", job.log("worker"))

    def test_a_step_that_is_no_integer_is_not_looked_for(self):
        for step in "500", 500.0:
            with self.assertRaisesRegex(TypeError, f"step is {step!r}; give an"):
                checkpoint.read(".", step)
        with self.assertRaisesRegex(FileNotFoundError, "has no checkpoint"):
            checkpoint.read(".", np.int64(500))

    def test_the_loop_ends_after_the_last_epoch(self):
        with LocalJob(workers=2, sets=["data.epochs=2"]) as job:
            for i in (0, 1):
                job.start_worker(i, EPOCHS)
            for i in (0, 1):
                self.assertEqual(job.wait("worker", i), 0, job.log("worker", i))
                self.assertIn("after the loop", job.log("worker", i))
            self.assertEqual(job.wait("chief"), 0, job.log("chief"))
            self.assertIn("end of input", job.log("chief"))
            # 24 examples are one batch of 8 for each of two workers.
            self.assertEqual(checkpoint.steps(job.path("checkpoints"))[-1], 2)

    def test_a_worker_that_comes_after_the_last_epoch_ends(self):
        sets = ["data.epochs=1", "checkpoint.every_steps=1"]
        with LocalJob(sets=sets) as job:
            job.start_worker(0, EPOCHS)
            self.assertEqual(job.wait("worker"), 0, job.log("worker"))
            self.assertEqual(job.wait("chief"), 0, job.log("chief"))
            # The same job again goes on from its last checkpoint.
            job.wait("ps")
            job.start_chief()
            job.start_server(0)
            job.start_worker(0, EPOCHS)
            self.assertEqual(job.wait("worker"), 0, job.log("worker"))
            self.assertEqual(job.wait("chief"), 0, job.log("chief"))
            self.assertEqual(job.log("worker").count("after the loop"), 2)
            self.assertEqual(checkpoint.steps(job.path("checkpoints"))[-1], 3)

    def test_a_name_that_is_left_out_stays_as_momentum_would_not_leave_it(self):
        program = SHRINK.replace(
            'step.push({"w": step.values["w"]}',
            'step.push({"w": step.values["w"], '
            '**({"b": np.ones((1, 3))} if step.number == 0 else {})}')
        with LocalJob(sets=["learning_rate=0.1", "train_steps=5",
                            "optimizer.kind=MOMENTUM"]) as job:
            job.start_worker(0, program)
            self.assertEqual(job.wait("worker"), 0, job.log("worker"))
            self.assertEqual(job.wait("chief"), 0, job.log("chief"))
            np.testing.assert_allclose(tensor(job, "b", np.float64),
                                       [[4.9, 4.9, 4.9]], rtol=1e-7)

    def test_a_gradient_that_does_not_fit_is_refused_with_both_shapes(self):
        with LocalJob() as job:
            job.start_worker(0, SHRINK.replace('{"w": step.values["w"]}',
                                               '{"w": np.zeros(3)}'))
            self.assertEqual(job.wait("worker"), 1)
            self.assertIn("ValueError", job.log("worker"))
            self.assertIn("(3,)", job.log("worker"))
            self.assertIn("(2,)", job.log("worker"))

    def test_what_a_program_puts_into_the_dict_of_values_changes_no_step(self):
        with LocalJob(sets=["train_steps=3", "learning_rate=0.1"]) as job:
            job.start_worker(0, SHRINK.replace(
                '    print("pushed"',
                '    step.values["w"] = 2 * step.values["w"].astype(int)\n'
                '    print("pushed"'))
            self.assertEqual(job.wait("worker"), 0, job.log("worker"))
            np.testing.assert_allclose(tensor(job, "w", np.float32),
                                       [0.729, -1.458], rtol=1e-6)

    def test_a_model_that_differs_is_refused_with_the_first_difference(self):
        with LocalJob(workers=2) as job:
            job.start_worker(0, SHRINK)
            job.wait_for_log("registered", "chief")
            job.start_worker(1, SHRINK.replace("(1, 3)", "(1, 4)"))
            codes = [job.wait("worker", 0), job.wait("worker", 1)]
            self.assertIn(1, codes)
            text = job.log("worker", 0) + job.log("worker", 1)
            self.assertIn("[1,3]", text)
            self.assertIn("[1,4]", text)

    def test_sigterm_ends_with_the_code_of_a_stopped_worker(self):
        with LocalJob(sets=["train_steps=1000000"]) as job:
            job.start_worker(0, SHRINK)
            job.wait_for_log("pushed 3")
            job.tasks["worker", 0].send_signal(signal.SIGTERM)
            self.assertEqual(job.wait("worker"), 143, job.log("worker")[-500:])
            self.assertIn("JobStopped: SIGTERM", job.log("worker"))

    def test_after_the_job_sigterm_ends_the_program(self):
        for close in "", "worker.close()\n":
            program = SHRINK + close + "print('over', flush=True)\n" + (
                "while True: signal.pause()\n")
            with self.subTest(close), LocalJob(sets=["train_steps=3"]) as job:
                job.start_worker(0, program)
                job.wait_for_log("over")
                job.tasks["worker", 0].send_signal(signal.SIGTERM)
                self.assertEqual(job.wait("worker"), -signal.SIGTERM,
                                 job.log("worker"))

    def test_a_worker_that_another_thread_closes_ends_its_calls(self):
        program = """
import os, threading, time
import numpy as np
import lockstep

worker = lockstep.Worker({"w": np.ones(2, np.float32)})

def train():
    try:
        for step in worker.steps():
            step.push({"w": step.values["w"]})
            print("pushed", step.number, flush=True)
    except Exception as error:
        print(f"thread: {error}\\n", end="", flush=True)

thread = threading.Thread(target=train)
thread.start()
while not os.path.exists("CLOSE"):
    time.sleep(0.02)
worker.close()
thread.join()
print("closed", flush=True)
"""
        for hangs in False, True:
            with self.subTest(hangs=hangs), LocalJob(sets=[
                    "train_steps=100000000",
                    *(["replicas_to_aggregate=1"] if hangs else [])]) as job:
                close = job.path("close")
                job.start_worker(0, program.replace("CLOSE", close))
                job.wait_for_log("pushed 3\n")
                if hangs:
                    job.stop("ps")
                    time.sleep(0.5)  # the call that hangs begins
                open(close, "w").close()
                self.assertEqual(job.wait("worker", timeout=60), 0,
                                 job.log("worker")[-2000:])
                self.assertIn("closed", job.log("worker"))
                self.assertIn("thread: the worker is closed", job.log("worker"))

    def test_the_program_ends_while_a_thread_of_it_trains(self):
        program = """
import threading, time
import numpy as np
import lockstep

worker = lockstep.Worker({"w": np.ones(2, np.float32)})

def train():
    for step in worker.steps():
        step.push({"w": step.values["w"]})

threading.Thread(target=train, daemon=True).start()
time.sleep(0.5)
print("ends", flush=True)
"""
        # The thread may come back from a call at any time of the end.
        for _ in range(6):
            with LocalJob(sets=["train_steps=100000000"]) as job:
                job.start_worker(0, program)
                self.assertEqual(job.wait("worker"), 0,
                                 job.log("worker")[-2000:])

    def test_the_job_hears_of_a_fault_whose_text_no_message_takes(self):
        for fault, reason in (
                (r'OSError("caf\udce9.png")', r"OSError: caf\udce9.png"),
                ("Silent()", "Silent: its text cannot be made")):
            program = SHRINK.replace("    print", f"    raise {fault}\n    print")
            with LocalJob(sets=["train_steps=1000", "lease=100s"]) as job:
                job.start_worker(0, f"""
class Silent(Exception):
    def __str__(self):
        return None
{program}""")
                self.assertEqual(job.wait("worker"), 1)
                self.assertNotIn("atexit", job.log("worker"))
                self.assertEqual(job.wait("chief", timeout=50), 1)
                self.assertIn(f"worker 0 left: failed: {reason}; 0 of 1",
                              job.log("chief"))

    def test_sigterm_stops_a_second_worker_of_the_program(self):
        first = SHRINK.replace('print("ended")', "worker.close()").replace(
            '"pushed", step.number', "end=''").replace(
            "    step.push", "    if step.number == 2: break\n    step.push")
        with LocalJob(sets=["train_steps=1000000"]) as job:
            job.start_worker(0, first + SHRINK)
            job.wait_for_log("pushed 9")
            job.tasks["worker", 0].send_signal(signal.SIGTERM)
            self.assertEqual(job.wait("worker"), 143, job.log("worker")[-500:])
            self.assertIn("JobStopped: SIGTERM", job.log("worker"))

    def test_a_loop_that_was_left_goes_on(self):
        program = SHRINK.replace(
            "for step in worker.steps():",
            "for step in (s for _ in range(4)\n"
            "             for s in itertools.islice(worker.steps(), 3)):")
        with LocalJob(sets=["train_steps=10"]) as job:
            job.start_worker(0, "import itertools\n" + program)
            self.assertEqual(job.wait("worker"), 0, job.log("worker"))
            self.assertEqual(job.wait("chief"), 0, job.log("chief"))
            self.assertIn("pushed 9\n", job.log("worker"))

    def test_a_worker_that_is_gone_leaves_its_job_while_the_program_lasts(self):
        pause = "time.sleep(600)\n"
        left = SHRINK.replace("    step.push",
                              "    if step.number == 3: break\n    step.push")
        direct = left.replace("worker = lockstep", "make = lambda: lockstep"
                              ).replace("worker.steps()", "make().steps()")
        for program in (left + "del worker\n" + pause, direct + pause):
            with self.subTest(program), LocalJob(sets=["lease=100s"]) as job:
                job.start_worker(0, "import time\n" + program)
                job.wait_for_log("ended")
                job.wait_for_log("worker 0 left: ", "chief")
                self.assertIsNone(job.tasks["worker", 0].poll())

    def test_control_c_interrupts_a_wait(self):
        with LocalJob(workers=2) as job:  # the other worker never comes
            job.start_worker(0, SHRINK)
            job.wait_for_log("worker 0 registered", "chief")
            job.tasks["worker", 0].send_signal(signal.SIGINT)
            self.assertNotEqual(job.wait("worker", timeout=60), 0)
            self.assertIn("KeyboardInterrupt", job.log("worker"))

    def test_signals_end_the_wait_for_a_server_that_hangs(self):
        # Workers of a job with backups announce their gradients, and wait for
        # the answer in push().
        sets = ["replicas_to_aggregate=1", "total_num_replicas=2",
                "train_steps=1000000"]
        program = SHRINK.replace("    step.push", """
    print("waits", step.number, flush=True)
    while step.number >= FIRST and os.path.exists("HOLD"):
        time.sleep(0.01)
    print("pushes", step.number, flush=True)
    step.push""").replace("import sys", "import time, sys")
        for number, code, says in (
                (signal.SIGTERM, 143, "JobStopped: SIGTERM"),
                (signal.SIGINT, -signal.SIGINT, "KeyboardInterrupt")):
            with self.subTest(number), LocalJob(workers=2, sets=sets) as job:
                hold, always = job.path("hold"), job.path("always")
                for path in hold, always:
                    open(path, "w").close()
                job.start_worker(0, program.replace("FIRST", "3").replace(
                    "HOLD", hold))
                # Every step is worker 0's.
                job.start_worker(1, program.replace("FIRST", "0").replace(
                    "HOLD", always))
                job.wait_for_log("waits 3\n")
                job.stop("ps")
                os.remove(hold)
                job.wait_for_log("pushes 3\n")
                time.sleep(0.5)  # the wait begins
                self.assertNotIn("pushed 3\n", job.log("worker"))
                job.tasks["worker", 0].send_signal(number)
                self.assertEqual(job.wait("worker", timeout=60), code,
                                 job.log("worker")[-2000:])
                self.assertIn(says, job.log("worker"))

    def test_a_signal_for_a_forked_child_is_not_the_worker_s(self):
        program = SHRINK.replace("    step.push", """
    if step.number == 1:
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(write, b"x")
            while True: time.sleep(0.1)
        os.read(read, 1)
        os.kill(child, signal.SIGTERM)
        print("code", os.waitpid(child, 0)[1])
        time.sleep(0.2)
    step.push""").replace("import sys", "import time, sys")
        with LocalJob(sets=["train_steps=5"]) as job:
            job.start_worker(0, program)
            self.assertEqual(job.wait("worker"), 0, job.log("worker"))
            self.assertIn("code 15", job.log("worker"))

    def test_a_job_with_a_built_in_model_is_refused(self):
        with LocalJob(sets=["model.kind=softmax", "data.train_images=/x",
                            "data.train_labels=/x"]) as job:
            job.start_worker(0, SHRINK)
            self.assertEqual(job.wait("worker"), 1)
            self.assertIn('model { kind: "external" }', job.log("worker"))

    def test_a_job_that_was_done_before_has_no_steps_and_says_so(self):
        with LocalJob(sets=["train_steps=3"]) as job:
            for program in (SHRINK, SHRINK + "print(worker.train_steps)\n"):
                if "train_steps" in program:
                    job.start_chief()
                    job.start_server(0)
                job.start_worker(0, program)
                code = job.wait("worker")
                self.assertEqual(job.wait("chief"), 0, job.log("chief"))
                job.wait("ps")
            log = job.log("worker")
            self.assertEqual(code, 1, log)
            self.assertEqual(log.count("pushed 0"), 1)
            self.assertIn("RuntimeWarning: the job was done before", log)
            self.assertIn("RuntimeError: the job was done before", log)

    def test_misuse_is_an_exception_with_the_fix(self):
        with LocalJob(sets=["train_steps=3"]) as job:
            job.start_worker(0, """
import os, sys
import numpy as np
import lockstep

def text_of(call):
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"

print("A", text_of(lambda: lockstep.Worker({"w": np.zeros(2, np.int64)})))
ragged = [[1, 2], [3]]
print("Q", text_of(lambda: lockstep.Worker({"w": ragged})))
for wrong in None, {"w": np.zeros(2)}:
    print("M", text_of(lambda: lockstep.Worker({"layer": wrong})))
worker = lockstep.Worker({"w": np.ones(2, np.float32),
                          "t": lockstep.Table(rows=4, dim=2)})
print("B", text_of(lambda: lockstep.Worker({"w": np.ones(2, np.float32)})))
for step in worker.steps():
    print("C", text_of(lambda: step.push({"v": np.zeros(2)})))
    print("O", text_of(lambda: step.push({}, loss=np.arange(3))))
    print("P", text_of(lambda: step.report(norm="high")))
    for wrong in (np.zeros(2),), None:
        print("N", text_of(lambda: step.push(wrong)))
    print("D", text_of(lambda: step.indices(1)))
    print("E", text_of(lambda: step.values["w"].__setitem__(0, 1)))
    for name, shape in ("w", 1), ("t", (1, 2)):
        rows = lockstep.Rows([1], np.ones(shape, complex))
        print("I", text_of(lambda: step.push({name: rows})))
    print("R", text_of(lambda: step.push({"w": ragged})))
    print("S", text_of(lambda: step.push({"t": lockstep.Rows([0, 1], ragged)})))
    for wrong in [1.9], [True]:
        print("J", text_of(lambda: lockstep.Rows(wrong, np.ones(1))))
    print("K", lockstep.Rows([], np.ones((0, 2))).indices.dtype)
    print("L", text_of(lambda: step.indices(100, ahead=1.7)))
    if os.fork() == 0:
        print("F", text_of(lambda: step.push({"w": np.zeros(2)})), flush=True)
        os._exit(0)
    os.wait()
    step.push({"w": np.zeros(2)})
    print("G", text_of(lambda: step.push({"w": np.zeros(2)})))
worker.close()
print("H", text_of(lambda: step.push({"w": np.zeros(2)})))
""")
            self.assertEqual(job.wait("worker"), 0, job.log("worker"))
            log = job.log("worker")
            for wanted in ("A ValueError: variable \"w\" is of int64",
                           "B RuntimeError: this process is a worker already",
                           'C ValueError: there is no variable "v"',
                           "D ValueError", "E ValueError",
                           'I ValueError: the gradient of "w" is of complex128',
                           'I ValueError: the gradient of "t" is of complex128',
                           "J ValueError: indices of Rows are float64; they",
                           "J ValueError: indices of Rows are bool; they must",
                           "K int64", "L TypeError",
                           'M TypeError: variable "layer" is a NoneType; give',
                           'M TypeError: variable "layer" is a dict; give an',
                           "O TypeError: loss is array([0, 1, 2]); give a numb",
                           "P TypeError: figure \"norm\" is 'high'; give a nu",
                           'Q ValueError: variable "w" cannot be an array',
                           'R ValueError: the gradient of "w" cannot be an arr',
                           "S ValueError: values of Rows cannot be an array",
                           "N TypeError: gradients is a tuple; give a dict",
                           "N TypeError: gradients is a NoneType; give a dict",
                           "F RuntimeError: this process was forked",
                           "G RuntimeError", "H RuntimeError: step"):
                self.assertIn(wanted, log)

    def test_a_killed_worker_comes_back_and_the_bits_are_the_same(self):
        saved = []
        for disturbed in (False, True):
            with LocalJob(workers=2, sets=["train_steps=200"]) as job:
                slow = SHRINK.replace("    step.push",
                                      "    time.sleep(0.005)\n    step.push")
                slow = slow.replace("import sys", "import time, sys")
                for i in range(2):
                    job.start_worker(i, slow)
                if disturbed:
                    job.wait_for_log("pushed 50", index=1)
                    job.kill("worker", 1)
                    job.wait_for_log("worker 1 is gone", "chief")
                    job.start_worker(1, slow)
                for i in range(2):
                    self.assertEqual(job.wait("worker", i), 0,
                                     job.log("worker", i)[-2000:])
                self.assertEqual(job.wait("chief"), 0)
                saved.append(tensor(job, "w", np.float32).tobytes())
        self.assertEqual(saved[0], saved[1])


if __name__ == "__main__":
    unittest.main(verbosity=2)
