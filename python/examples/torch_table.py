"""Which of a million users likes which of a million things: a table in PyTorch.

The table is on the servers; a worker has the rows that its batch names.
"""

import torch
import torch.nn.functional as F

import lockstep.torch

PEOPLE = 1_000_000

torch.manual_seed(0)
users = torch.randint(0, PEOPLE, (20_000,))
things = torch.randint(0, PEOPLE, (20_000,))
liked = ((users + things) % 2).float()
ids = torch.stack([users, PEOPLE + things], dim=1)


class Model(torch.nn.Module):

    def __init__(self):
        super().__init__()
        self.rows = lockstep.torch.Embedding(rows=2 * PEOPLE, dim=16, std=0.1)
        self.score = torch.nn.Sequential(
            torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))

    def forward(self, ids):
        return self.score(self.rows(ids).flatten(1)).squeeze(1)


model = Model()
worker = lockstep.torch.Worker(model)
for step in worker.steps():
    batch = step.indices(len(ids))
    # The rows of the next step arrive with its values.
    step.prefetch(ids[step.indices(len(ids), ahead=1)])
    loss = F.binary_cross_entropy_with_logits(model(ids[batch]), liked[batch])
    step.backward(loss)
