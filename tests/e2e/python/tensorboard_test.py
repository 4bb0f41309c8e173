"""TensorBoard reads the summaries of a job, also of one with a killed chief."""

import glob
import os
import tempfile
import time
import unittest

from tensorboard.backend.event_processing import event_accumulator
from tensorboard.backend.event_processing import event_file_loader
from tensorboard.plugins.hparams import plugin_data_pb2

from local_job import LocalJob

WORKER = """
import time
import lockstep, numpy as np
worker = lockstep.Worker({"w": np.ones(2, np.float32)})
for step in worker.steps():
    time.sleep(0.01)
    step.report(norm=float(step.number))
    step.push({"w": step.values["w"]}, loss=float(1000 - step.number))
"""

EVALUATOR = """
import lockstep
for checkpoint in lockstep.Evaluator().checkpoints():
    checkpoint.report(test_accuracy=checkpoint.step / 1000)
"""


def curves(folder):
    """Returns {tag: [(step, value), ...]} as TensorBoard shows them."""
    read = event_accumulator.EventAccumulator(
        folder, size_guidance={event_accumulator.SCALARS: 0})
    read.Reload()
    return {tag: [(event.step, event.value) for event in read.Scalars(tag)]
            for tag in read.Tags()["scalars"]}


def parameters(folder):
    for path in sorted(glob.glob(folder + "/events*")):
        for event in event_file_loader.EventFileLoader(path).Load():
            for value in event.summary.value:
                data = value.metadata.plugin_data
                if data.plugin_name == "hparams":
                    return plugin_data_pb2.HParamsPluginData.FromString(
                        data.content).session_start_info.hparams
    return None


class TensorBoardTest(unittest.TestCase):

    def run_job(self, steps, kill=False, evaluator=False):
        job = LocalJob(workers=2, evaluator=evaluator, sets=[
            f"train_steps={steps}", "learning_rate=0.01", "summary.every=0.1s",
            "checkpoint.every_steps=50", "summary.directory=" + self.folder])
        with job:
            if evaluator:
                job.start_program("evaluator", 0, EVALUATOR)
                job.wait_for_log("evaluator 0 registered", "chief")
            for i in range(2):
                job.start_worker(i, WORKER)
            if kill:
                self.wait_for_step(steps // 3)
                job.kill("chief")
                job.start_chief()
            self.assertEqual(job.wait("chief"), 0, job.log("chief"))

    def wait_for_step(self, step):
        end = time.monotonic() + 60
        while True:
            reached = [s for s, _ in curves(self.folder).get("loss", [])
                       ] if os.path.isdir(self.folder) else []
            if reached and reached[-1] >= step:
                return
            self.assertLess(time.monotonic(), end, reached)
            time.sleep(0.1)

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="lockstep-summary-")
        self.addCleanup(scratch.cleanup)
        self.folder = os.path.join(scratch.name, "summary")

    def test_curves_of_the_job_its_workers_and_its_evaluator(self):
        self.run_job(100, evaluator=True)
        job = curves(self.folder)
        self.assertLessEqual({"loss", "learning_rate", "examples_per_second",
                              "step_seconds", "passes_accepted_per_second",
                              "passes_stale_per_second", "waiting_fraction",
                              "norm"}, set(job))
        # The workers' newest losses are of this step and of steps before it, by
        # any number of them on a busy machine; or of the pass after it.
        for step, loss in job["loss"]:
            self.assertGreaterEqual(loss, 1000 - step - 1)
        losses = [loss for _, loss in job["loss"]]
        self.assertLessEqual(losses[0], 1000)
        self.assertLess(losses[-1], losses[0])
        self.assertEqual(job["learning_rate"][-1][0], 100)
        for worker in ("worker_0", "worker_1"):
            self.assertIn("loss", curves(os.path.join(self.folder, worker)))
        scores = curves(os.path.join(self.folder, "evaluator"))
        step, accuracy = scores["test_accuracy"][-1]
        self.assertEqual(step, 100)
        self.assertAlmostEqual(accuracy, 0.1)
        shown = parameters(self.folder)
        self.assertEqual(shown["batch_size"].number_value, 8)
        self.assertEqual(shown["model.kind"].string_value, "external")
        self.assertNotIn("checkpoint.directory", shown)

    def test_a_killed_chief_leaves_one_curve(self):
        self.run_job(300, kill=True)
        files = glob.glob(self.folder + "/events*")
        self.assertEqual(len(files), 2, files)
        steps = [step for step, _ in curves(self.folder)["loss"]]
        self.assertEqual(steps, sorted(set(steps)))
        self.assertLess(steps[0], 100)
        self.assertEqual(steps[-1], 300)
        # No gap of a second of this job but the one of the chief's absence.
        gaps = sorted(b - a for a, b in zip(steps, steps[1:]))
        self.assertLess(gaps[-2], 100, steps)


if __name__ == "__main__":
    unittest.main()
