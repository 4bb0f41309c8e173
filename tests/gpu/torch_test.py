"""lockstep.torch.Worker whose model is on a GPU, in real processes.

LOCKSTEP_GPU_DEVICE=cpu tries the test itself where there is no GPU.
"""

import os
import sys
import unittest

import torch

import lockstep.torch
from local_job import LocalJob

DEVICE = os.environ.get("LOCKSTEP_GPU_DEVICE", "cuda")
STEPS = 200

COMMON = f"""
import torch
torch.manual_seed(0)
torch.backends.cudnn.deterministic = True
torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False
device = torch.device("{DEVICE}")
model = torch.nn.Sequential(
    torch.nn.Conv2d(1, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(),
    torch.nn.Linear(8 * 36, 64), torch.nn.Tanh(), torch.nn.Linear(64, 10))
generator = torch.Generator().manual_seed(1)
x = torch.randn(256, 1, 8, 8, generator=generator).to(device)
y = torch.randint(0, 10, (256,), generator=generator).to(device)
loss_of = torch.nn.functional.cross_entropy
"""

WORKER = """
import lockstep.torch
model = MODEL.to(device)
worker = lockstep.torch.Worker(model)
for step in worker.steps():
    assert next(model.parameters()).device.type == device.type
    rows = step.indices(len(x))
    if step.number % 50 == 0:
        print("step", step.number, *rows.tolist(), flush=True)
    out = model(x[rows].to(next(model.parameters()).dtype))
    step.backward(loss_of(out.float(), y[rows]))
"""


def program(model="model", every_row=False):
    text = COMMON + WORKER.replace("MODEL", model)
    if every_row:
        text = text.replace("step.number % 50 == 0", "True")
    return text


class TorchOnGpuTest(unittest.TestCase):

    def train(self, text, disturb=None, sets=(), steps=STEPS):
        """Returns the trained tensors and the logs of both workers."""
        sets = [f"train_steps={steps}", "learning_rate=0.02", *sets]
        with LocalJob(workers=2, servers=2, sets=sets) as job:
            for worker in range(2):
                job.start_worker(worker, text)
            if disturb:
                disturb(job)
            for worker in range(2):
                self.assertEqual(job.wait("worker", worker, 240), 0,
                                 job.log("worker", worker)[-2000:])
            self.assertEqual(job.wait("chief"), 0)
            space = {}
            exec(COMMON, space)
            self.assertEqual(lockstep.torch.load(
                space["model"], job.path("checkpoints")), steps)
            logs = [job.log("worker", worker) for worker in range(2)]
            return dict(space["model"].state_dict()), logs

    def test_two_workers_equal_one_process_on_the_joined_batch(self):
        trained, logs = self.train(program(every_row=True))
        batches = [{}, {}]
        for batch, log in zip(batches, logs):
            for line in log.splitlines():
                if line.startswith("step "):
                    number, *rows = map(int, line.split()[1:])
                    batch[number] = rows
        space = {}
        exec(COMMON, space)
        alone = space["model"].to(space["device"])
        optimizer = torch.optim.SGD(alone.parameters(), lr=0.02)
        for number in range(STEPS):
            rows = batches[0][number] + batches[1][number]
            optimizer.zero_grad()
            space["loss_of"](alone(space["x"][rows]),
                             space["y"][rows]).backward()
            optimizer.step()
        far = max(float((trained[name] - value.cpu()).abs().max())
                  for name, value in alone.state_dict().items())
        print("largest difference", far)
        self.assertLess(far, 1e-5)

    def test_a_killed_worker_leaves_the_same_bits(self):
        def kill(job):
            job.wait_for_log("step 50 ", index=1)
            job.kill("worker", 1)
            job.start_worker(1, program())
        plain, _ = self.train(program(), steps=2000)
        killed, _ = self.train(program(), disturb=kill, steps=2000)
        for name, value in plain.items():
            self.assertTrue(torch.equal(value, killed[name]), name)

    def test_bfloat16_parameters_train(self):
        before = {}
        exec(COMMON, before)
        trained, _ = self.train(program("model.bfloat16()"))
        moved = max(float((trained[name] - value).abs().max())
                    for name, value in before["model"].state_dict().items())
        self.assertGreater(moved, 1e-2)


if __name__ == "__main__":
    if DEVICE == "cuda" and not torch.cuda.is_available():
        print("SKIPPED, NOTHING WAS PROVED: PyTorch sees no GPU")
        sys.exit(77)
    unittest.main(verbosity=2)
