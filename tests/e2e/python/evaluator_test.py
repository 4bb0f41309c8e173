"""Evaluators in Python, and figures in the job's status."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import lockstep
from local_job import BIN, LocalJob
from lockstep import checkpoint

WORKER = """
import time
import lockstep, numpy as np
worker = lockstep.Worker({"w": np.ones(2, np.float32)})
for step in worker.steps():
    time.sleep(0.01)
    step.report(norm=float((step.values["w"] ** 2).sum()))
    step.push({"w": step.values["w"]}, loss=1.0)
"""

EVALUATOR = """
import lockstep
for checkpoint in lockstep.Evaluator().checkpoints():
    w = checkpoint.values()["w"]
    print("scored", checkpoint.step, *w.tolist(), flush=True)
    checkpoint.report(test_accuracy=0.25 + checkpoint.step / 1000, other=2)
print("ended")
"""

SETS = ["train_steps=100", "learning_rate=0.01", "checkpoint.every_steps=30"]


class GivenUp:
    """A native evaluation that the chief has taken for dead: its next report is
    refused, and its next wait joins again."""

    def __init__(self):
        self.reports = []
        self.joined = 1

    def report(self, step, figures):
        if self.joined == 1:
            raise lockstep._session.Unwanted("evaluator 0 was taken for dead")
        self.reports.append((step, figures))

    def wait(self, _timeout):
        self.joined += 1
        return False


class Locked:
    """A native evaluation that the chief has given up and does not let in."""

    def __init__(self, code, exit_code):
        self.why = (code, "the chief has a reason", exit_code)

    def job(self):
        return "job", "checkpoints"

    def joins(self):
        return 1

    def set_trouble(self, _trouble):
        pass

    def report(self, _step, _figures):
        raise RuntimeError("the job ended")

    def wait(self, _timeout):
        raise RuntimeError(self.why[1])

    def end(self):
        return self.why

    def leave(self, _reason):
        pass


def evaluator_of(native):
    evaluator = object.__new__(lockstep.Evaluator)
    evaluator._only = None
    evaluator._native = native
    return evaluator


def write_manifest(directory, step, saved_at):
    folder = os.path.join(directory, f"step-{step:08}")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "manifest.json"), "w") as f:
        json.dump({"saved_at_unix_ms": saved_at}, f)
    return folder


class EvaluationTest(unittest.TestCase):

    def test_a_report_that_the_chief_refuses_is_made_again_as_a_new_member(self):
        native = GivenUp()
        self.assertTrue(evaluator_of(native)._report(7, [("x", 1.0)]))
        self.assertEqual(native.reports, [(7, [("x", 1.0)])])

    def test_an_evaluator_that_is_not_let_in_again_ends_with_the_reason(self):
        for code, kind, exit_code in (
                ("UNAVAILABLE", lockstep.JobFailed, 129),
                ("CANCELLED", lockstep.JobStopped, 3),
                ("FAILED_PRECONDITION", lockstep.Refused, 1)):
            for call in (lambda e: list(e.checkpoints()),
                         lambda e: e._report(7, [("x", 1.0)])):
                with self.subTest(code), self.assertRaisesRegex(
                        kind, "the chief has a reason") as raised:
                    call(evaluator_of(Locked(code, exit_code)))
                self.assertEqual(raised.exception.exit_code, exit_code)

    def test_a_job_that_goes_back_has_a_new_checkpoint_to_score(self):
        evaluator = evaluator_of(GivenUp())
        with tempfile.TemporaryDirectory() as directory, mock.patch.object(
                checkpoint, "read", lambda _, step, _averaged: (step, {})):
            last = None
            folder = write_manifest(directory, 20, 2)
            for step, saved_at in ((20, 2), (20, 3), (10, 1)):
                if step == 10:
                    shutil.rmtree(folder)
                write_manifest(directory, step, saved_at)
                last, found = evaluator._newest(directory, last)
                self.assertEqual(found.step, step)
                self.assertIsNone(evaluator._newest(directory, last)[1])

    def test_figures_of_a_checkpoint_that_the_job_has_lost_are_not_reported(
            self):
        native = mock.Mock()
        evaluator = evaluator_of(native)
        with tempfile.TemporaryDirectory() as directory, mock.patch.object(
                checkpoint, "read", lambda _, step, _averaged: (step, {})):
            native.job.return_value = "job", directory
            write_manifest(directory, 10, 1)
            for (step, saved_at), reports in (
                    ((30, 4), 1),  # the job has gone on
                    ((20, 2), 1),  # nothing is newer
                    ((20, 3), 0),  # it has written the step again
                    ((10, 1), 0),  # it has gone back
                    ((None, None), 1)):  # the directory is not to be seen
                with self.subTest(step=step, saved_at=saved_at):
                    native.report.reset_mock()
                    folder = write_manifest(directory, 20, 2)
                    _, found = evaluator._newest(directory, None)
                    shutil.rmtree(folder)
                    if step is None:
                        shutil.rmtree(directory)
                    else:
                        folder = write_manifest(directory, step, saved_at)
                    found.report(x=1.0)
                    self.assertEqual(native.report.call_count, reports)
                    # Otherwise the job would not wait for figures any more.
                    self.assertTrue(found._reported)
                    if step != 10:
                        shutil.rmtree(folder, ignore_errors=True)
            os.mkdir(directory)

    def test_a_checkpoint_that_is_written_again_while_it_is_read_is_no_fault(
            self):
        evaluator = evaluator_of(mock.Mock())
        with tempfile.TemporaryDirectory() as directory:
            evaluator._native.job.return_value = "job", directory
            write_manifest(directory, 20, 2)

            def read(_, step, _averaged):
                write_manifest(directory, step, 3)
                raise ValueError("sha256 is another")

            with mock.patch.object(checkpoint, "read", read):
                self.assertEqual(evaluator._newest(directory, None),
                                 (None, None))
                with self.assertRaisesRegex(ValueError, "sha256 is another"):
                    evaluator._newest(directory, None)

    def test_trouble_with_a_checkpoint_ends_with_the_next(self):
        native = mock.Mock(**{"job.return_value": ("job", "checkpoints"),
                              "joins.return_value": 1,
                              "wait.return_value": False})
        evaluator = evaluator_of(native)
        evaluator._gone = mock.Mock()
        one, other = ((step, evaluator._open(step, {})) for step in (30, 60))
        damaged = checkpoint.Damaged("is damaged")
        seen = [damaged, one, (30, None), other, (60, None), one, other]
        with mock.patch.object(evaluator, "_newest", side_effect=seen):
            loop = evaluator.checkpoints()
            for told in (["", "is damaged", ""], ["no figure of step 30", ""],
                         ["no figure of step 60", ""], [""]):
                next(loop)  # without a figure of the one before
                calls = native.set_trouble.mock_calls
                self.assertEqual([each.args[0][-20:] for each in calls], told)
                native.set_trouble.reset_mock()
            loop.close()

    def test_a_damaged_manifest_is_told_and_ends_neither_loop_nor_report(self):
        native = mock.Mock(**{"joins.return_value": 1,
                              "wait.side_effect": [False, False, True],
                              "end.return_value": ("OK", "", 0)})
        evaluator = evaluator_of(native)
        with tempfile.TemporaryDirectory() as directory:
            native.job.return_value = "job", directory
            folder = write_manifest(directory, 20, 2)
            path = os.path.join(folder, "manifest.json")
            with mock.patch.object(checkpoint, "read",
                                   lambda _, step, _averaged: (step, {})):
                for found in evaluator.checkpoints():
                    with open(path, "w"):
                        pass
                    found.report(x=1.0)
        native.report.assert_called_once_with(20, [("x", 1.0)])
        self.assertIn(f"{path} is damaged: ",
                      native.set_trouble.mock_calls[-1].args[0])

    def test_exceptions_of_the_native_module_are_runtime_errors(self):
        for kind in (lockstep._native.Unwanted, lockstep._native.EndOfInput):
            self.assertTrue(issubclass(kind, RuntimeError), kind)


class EvaluatorTest(unittest.TestCase):

    def start(self, job, evaluator=EVALUATOR, worker=WORKER):
        job.start_program("evaluator", 0, evaluator)
        job.wait_for_log("evaluator 0 registered", "chief")
        job.start_worker(0, worker)

    def status(self, job):
        done = subprocess.run(
            [os.path.join(BIN, "lockstep"), "status", "--json", "--chief",
             job.cluster["chief"][0]], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_an_evaluator_without_a_chief_can_be_interrupted(self):
        for number, says in ((signal.SIGINT, "KeyboardInterrupt"),
                             (signal.SIGTERM, "JobStopped")):
            with self.subTest(number), LocalJob(evaluator=True) as job:
                job.kill("chief")
                job.start_program("evaluator", 0, EVALUATOR)
                job.wait_for_log("for the chief at", "evaluator")
                job.tasks["evaluator", 0].send_signal(number)
                job.wait("evaluator")
                self.assertIn(says, job.log("evaluator"))

    def test_a_checkpoint_is_scored_after_the_job(self):
        with LocalJob(sets=SETS) as job:
            job.start_worker(0, WORKER)
            self.assertEqual(job.wait("chief"), 0, job.log("chief"))
            # On a slow disk the job leaves checkpoints out.
            before = checkpoint.steps(job.path("checkpoints"))[-2]
            for step in ([], ["--step", str(before)]):
                done = subprocess.run(
                    [os.path.join(BIN, "lockstep"), "evaluate", "--job",
                     job.path("job.textproto"), *step, "--", sys.executable,
                     "-c", EVALUATOR], capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                number = int(step[1]) if step else 100
                self.assertIn(f"step {number}: test_accuracy "
                              f"{0.25 + number / 1000:g}, other 2\n", done.stdout)
                self.assertIn("ended", done.stdout)

    def test_the_job_has_the_figures_and_waits_for_the_last(self):
        with LocalJob(sets=SETS, evaluator=True) as job:
            self.start(job)
            self.assertEqual(job.wait("worker"), 0, job.log("worker"))
            self.assertEqual(job.wait("chief"), 0, job.log("chief"))
            self.assertEqual(job.wait("evaluator"), 0, job.log("evaluator"))
            log = job.log("evaluator")
            self.assertIn("ended", log)
            scored = {int(line.split()[1]): float(line.split()[2])
                      for line in log.splitlines()
                      if line.startswith("scored")}
            self.assertIn(100, scored)
            for step, value in scored.items():
                self.assertAlmostEqual(value, 0.99 ** step, places=4)
            self.assertIn("step 100: test_accuracy 0.35, other 2",
                          job.log("chief"))

    def test_after_the_job_sigterm_ends_the_program(self):
        with LocalJob(sets=SETS, evaluator=True) as job:
            self.start(job, EVALUATOR + "import time; time.sleep(60)\n")
            job.wait_for_log("ended", "evaluator")
            job.tasks["evaluator", 0].send_signal(signal.SIGTERM)
            self.assertEqual(job.wait("evaluator"), -signal.SIGTERM,
                             job.log("evaluator"))

    def test_figures_of_steps_and_checkpoints_are_in_the_status(self):
        with LocalJob(sets=["train_steps=100000", *SETS[1:]],
                      evaluator=True) as job:
            self.start(job)
            # The figures of the first are reported before the second is there;
            # a slow disk may leave checkpoints out.
            job.wait_for_pattern(r"(?s)scored \d+.*scored \d+", "evaluator")
            status = self.status(job)
            figures = status["evaluation"]["figures"]
            self.assertEqual(figures["other"], 2)
            self.assertGreaterEqual(figures["test_accuracy"], 0.28)
            workers = [member for member in status["members"]
                       if member["task"] == "worker 0"]
            self.assertLess(workers[0]["progress"]["figures"]["norm"], 2)

    def test_the_done_line_has_the_figure(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, program in (("train.py", WORKER), ("eval.py", EVALUATOR)):
                with open(os.path.join(folder, name), "w") as f:
                    f.write(program)
            done = subprocess.run(
                [os.path.join(BIN, "lockstep"), "run", "--ps", "1",
                 "--workers", "1",
                 *[a for s in [*SETS, "batch_size=1", "checkpoint.directory="
                               + os.path.join(folder, "checkpoints")]
                   for a in ("--set", s)],
                 "--evaluator", f"{sys.executable} {folder}/eval.py", "--",
                 sys.executable, os.path.join(folder, "train.py")],
                capture_output=True, text=True, cwd=folder)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertRegex(done.stdout + done.stderr,
                             "done: step 100.*test_accuracy 0.3500, other 2")

    def test_an_evaluator_that_fails_holds_the_job_up_no_longer(self):
        with LocalJob(sets=SETS, evaluator=True) as job:
            self.start(job, EVALUATOR.replace(
                "    w = ", "    raise KeyError('no such figure')\n    w = "))
            self.assertEqual(job.wait("worker"), 0, job.log("worker"))
            self.assertEqual(job.wait("chief"), 0, job.log("chief"))
            self.assertEqual(job.wait("evaluator"), 1)
            self.assertIn("no such figure", job.log("evaluator"))
            self.assertIn("evaluator 0 left: KeyError: 'no such figure'",
                          job.log("chief"))

    def test_an_evaluator_that_is_dropped_holds_the_job_up_no_longer(self):
        with LocalJob(sets=SETS, evaluator=True) as job:
            self.start(job, """
import time
import lockstep
evaluator = lockstep.Evaluator()
del evaluator
time.sleep(600)
""")
            job.wait_for_log("evaluator 0 left: the evaluator has ended",
                             "chief")
            self.assertEqual(job.wait("worker"), 0, job.log("worker"))
            self.assertEqual(job.wait("chief"), 0, job.log("chief"))

    def test_an_evaluator_that_leaves_its_loop_holds_the_job_up_no_longer(self):
        with LocalJob(sets=SETS, evaluator=True) as job:
            self.start(job, EVALUATOR.replace(
                "    w = ", "    break\n    w = ") + "import time\n"
                "time.sleep(600)\n")
            self.assertEqual(job.wait("worker"), 0, job.log("worker"))
            self.assertEqual(job.wait("chief"), 0, job.log("chief"))
            self.assertIn("has left the loop", job.log("chief"))

    def test_a_stop_before_the_figures_is_told_as_one(self):
        with LocalJob(sets=["train_steps=100000", *SETS[1:]],
                      evaluator=True) as job:
            self.start(job, "import os, signal\n" + EVALUATOR.replace(
                "    checkpoint.report",
                "    os.kill(os.getpid(), signal.SIGTERM)\n"
                "    checkpoint.report"))
            self.assertEqual(job.wait("evaluator"), 143, job.log("evaluator"))
            self.assertIn("JobStopped: ", job.log("evaluator"))

    def test_a_job_that_fails_before_the_figures_is_told_with_its_reason(self):
        with LocalJob(sets=["train_steps=100000", *SETS[1:]],
                      evaluator=True) as job:
            self.start(job, EVALUATOR.replace(
                "    checkpoint.report", "    import time; time.sleep(3)\n"
                "    checkpoint.report"), WORKER.replace("    step.push", """
    if step.number == 40:
        raise KeyError("batch")
    step.push"""))
            self.assertEqual(job.wait("evaluator"), 1, job.log("evaluator"))
            self.assertIn("lockstep: JobFailed: ", job.log("evaluator"))
            self.assertIn("KeyError: 'batch'", job.log("evaluator"))

    def test_after_a_report_that_tells_the_end_sigterm_ends_the_program(self):
        with LocalJob(sets=["train_steps=100000", *SETS[1:]],
                      evaluator=True) as job:
            # The job fails once it has figures: on a slow disk the evaluator
            # would else hear of the end before it sees a checkpoint.
            reports = job.path("reports")
            self.start(job, "import time\n" + EVALUATOR.replace(
                "    checkpoint.report(test_accuracy=0.25 + checkpoint.step / "
                "1000, other=2)", f"""
    try:
        while True:
            checkpoint.report(other=2)
            open({reports!r}, "w").close()
            time.sleep(0.1)
    except lockstep.JobFailed:
        print("caught", flush=True)
        time.sleep(60)
"""), "import os\n" + WORKER.replace("    step.push", f"""
    if os.path.exists({reports!r}):
        raise KeyError("batch")
    step.push"""))
            job.wait_for_log("caught", "evaluator")
            job.tasks["evaluator", 0].send_signal(signal.SIGTERM)
            self.assertEqual(job.wait("evaluator", timeout=50),
                             -signal.SIGTERM, job.log("evaluator"))

    def test_an_evaluator_without_a_figure_holds_the_job_up_no_longer(self):
        with LocalJob(sets=SETS, evaluator=True) as job:
            self.start(job, EVALUATOR.replace("    checkpoint.report",
                                              "    dict"))
            self.assertEqual(job.wait("worker"), 0, job.log("worker"))
            self.assertEqual(job.wait("chief"), 0, job.log("chief"))
            self.assertEqual(job.wait("evaluator"), 0, job.log("evaluator"))
            self.assertIn("reported no figure of step", job.log("chief"))

    def test_the_job_waits_for_a_program_that_left_other_checkpoints_out(self):
        with LocalJob(sets=SETS, evaluator=True) as job:
            self.start(job, "import time\n" + EVALUATOR.replace(
                "    checkpoint.report", """
    if checkpoint.step < 100:
        continue
    time.sleep(4)  # longer than the chief waits for what is in trouble
    checkpoint.report"""))
            self.assertEqual(job.wait("chief"), 0, job.log("chief"))
            self.assertIn("step 100: test_accuracy 0.35, other 2",
                          job.log("chief"))

    # The first and only checkpoint is that of the last step.
    LAST = ["train_steps=100", "learning_rate=0.01"]

    def test_an_evaluator_that_sees_no_checkpoint_holds_the_job_up_no_longer(
            self):
        with tempfile.TemporaryDirectory() as folder:
            with LocalJob(sets=[*self.LAST, "checkpoint.directory=relative"],
                          evaluator=True, chief_folder=folder) as job:
                self.start(job)
                self.assertEqual(job.wait("worker"), 0, job.log("worker"))
                self.assertEqual(job.wait("chief"), 0, job.log("chief"))
                self.assertEqual(job.wait("evaluator"), 0,
                                 job.log("evaluator"))
                self.assertIn(
                    "step 100 stays unscored: evaluator 0 cannot score it: "
                    f"there is no checkpoint in {os.path.abspath('relative')}, "
                    "and it is not the directory that the chief has marked",
                    job.log("chief"))

    def test_before_the_first_checkpoint_the_job_waits_for_its_figures(self):
        with LocalJob(sets=self.LAST, evaluator=True) as job:
            self.start(job)
            self.assertEqual(job.wait("chief"), 0, job.log("chief"))
            self.assertEqual(job.wait("evaluator"), 0, job.log("evaluator"))
            self.assertIn("scored 100", job.log("evaluator"))
            self.assertNotIn("unscored", job.log("chief"))

    def test_wrong_figures_are_exceptions(self):
        with LocalJob(sets=SETS, evaluator=True) as job:
            self.start(job, EVALUATOR.replace("    checkpoint.report", """
    for wrong in ({}, {"a b": 1}, {"x": float("nan")}, {"y": "text"}):
        try:
            checkpoint.report(**wrong)
        except (TypeError, ValueError) as error:
            print("refused", error)
    checkpoint.report"""), WORKER.replace("    step.push", """
    if step.number == 0:
        for wrong in ({"": 1}, {"x": float("inf")},
                      {f"n{i}": 1 for i in range(17)}):
            try:
                step.report(**wrong)
            except ValueError as error:
                print("refused", error)
    step.push"""))
            self.assertEqual(job.wait("worker"), 0, job.log("worker"))
            self.assertEqual(job.wait("evaluator"), 0, job.log("evaluator"))
            log = job.log("evaluator")
            scored = log.count("scored ")
            self.assertGreater(scored, 0)
            self.assertEqual([log.count("refused " + text) for text in (
                "", "no figure was given", "figure \"y\" is 'text'; give a")],
                             [4 * scored, scored, scored], log)
            self.assertEqual(job.log("worker").count("refused"), 3)

    def test_a_worker_s_TF_CONFIG_is_refused(self):
        with LocalJob(evaluator=True) as job:
            job.start_program("worker", 0, EVALUATOR)
            self.assertEqual(job.wait("worker"), 1)
            self.assertIn("ValueError", job.log("worker"))
            self.assertIn("evaluator", job.log("worker"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
