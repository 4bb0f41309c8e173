"""A PyTorch model, trained by as many workers as there are."""

import torch
import torch.nn.functional as F

import lockstep.torch

torch.manual_seed(0)
x = torch.randn(8192, 32)
y = (x[:, :10] * 2 + x[:, 10:20]).argmax(dim=1)
model = torch.nn.Sequential(
    torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))

worker = lockstep.torch.Worker(model)            # joins; has the job's values
for step in worker.steps():                      # ends when the job ends
    rows = step.indices(len(x))                  # this pass's examples
    loss = F.cross_entropy(model(x[rows]), y[rows])
    step.backward(loss)                          # sends gradients meanwhile
