"""Gradients that a program changes after step.backward(), or before a step."""

import unittest

from needs import need

need("torch")

from local_job import TorchJob

MODEL = """
import torch
import lockstep.torch
model = torch.nn.Linear(4, 2)
torch.nn.init.zeros_(model.weight)
x = torch.ones(3, 4)
worker = lockstep.torch.Worker(model)
for step in worker.steps():
    begun = model.weight[0, 0].item()
"""


class UnsentTest(unittest.TestCase):

    def run_alone(self, body, code=0):
        with TorchJob(sets=["train_steps=4", "learning_rate=1"]) as job:
            job.start_worker(0, MODEL + body)
            self.assertEqual(job.wait("worker"), code, job.log("worker"))
            return job.log("worker")

    def test_a_change_that_would_have_no_effect_later_is_an_exception(self):
        for change in (
                "torch.nn.utils.clip_grad_norm_(model.parameters(), 1e-3)",
                "model.weight.grad.zero_()", "model.zero_grad(set_to_none=True)",
                "model(x).sum().backward()"):
            with self.subTest(change):
                log = self.run_alone(f"""
    print("step", step.number)
    step.backward(model(x).sum())
    {change}
""", code=1)
                self.assertIn('RuntimeError: the gradient of "weight" was '
                              "changed after step.backward() in step 0", log)
                self.assertNotIn("step 1\n", log)

    def test_a_change_after_gradients_were_sent_is_an_exception(self):
        clip = "torch.nn.utils.clip_grad_norm_(model.parameters(), 1e-3)"
        log = self.run_alone(f"""
    step.backward(model(x).sum(), last=True)
    {clip}
""", code=1)
        self.assertIn("after step.backward() in step 0", log)
        log = self.run_alone(f"""
    step.backward(model(x).sum())
    if step.number == 3: {clip}
""", code=1)
        self.assertIn("after step.backward() in step 3", log)

    def test_gradients_that_were_sent_may_be_freed(self):
        self.run_alone("""
    step.backward(model(x).sum(), last=True)
    model.zero_grad(set_to_none=True)
""")

    def test_the_body_of_a_dropped_pass_may_read_gradients(self):
        log = self.run_alone("""
    def drop(i):
        raise lockstep._session.Unwanted("dropped")
    if step.number == 2:
        worker._send = drop
        step.backward(model(x).sum())
        assert worker._unwanted
        print("norms", [float(p.grad.norm()) for p in model.parameters()])
        raise SystemExit(5)
    step.backward(model(x).sum())
""", code=5)
        self.assertIn("norms [", log)

    def test_gradients_that_wait_because_of_last_may_be_changed(self):
        self.run_alone("""
    step.backward(model(x).sum(), last=False)
    model.weight.grad.fill_(0.25)
assert begun == -0.25 * step.number, (begun, step.number)
""")

    def test_a_pass_before_the_loop_counts_in_no_step(self):
        with TorchJob(sets=["train_steps=4", "learning_rate=1"]) as job:
            job.start_worker(0, MODEL.replace(
                "for step", "model(x).sum().backward()\nfor step") + """
    step.backward(model(x).sum() / 3)
assert begun == -step.number, (begun, step.number)
""")
            self.assertEqual(job.wait("worker"), 0, job.log("worker"))

    def test_a_later_call_may_add_to_what_one_has_left(self):
        self.run_alone("""
    step.backward(model(x).sum() / 6)
    step.backward(model(x).sum() / 6)
assert abs(begun + step.number) < 1e-6, (begun, step.number)
""")


if __name__ == "__main__":
    unittest.main(verbosity=2)
