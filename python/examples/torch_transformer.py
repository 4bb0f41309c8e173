"""A small language model in PyTorch, trained on a text that it makes up."""

import torch
import torch.nn.functional as F

import lockstep.torch

LENGTH, WIDTH = 32, 64

torch.manual_seed(0)
text = torch.tensor(list(b"to be or not to be, that is the question; " * 500))


class Model(torch.nn.Module):

    def __init__(self):
        super().__init__()
        self.letters = torch.nn.Embedding(256, WIDTH)
        self.places = torch.nn.Parameter(0.02 * torch.randn(LENGTH, WIDTH))
        layer = torch.nn.TransformerEncoderLayer(
            WIDTH, nhead=4, dim_feedforward=4 * WIDTH, dropout=0.1,
            batch_first=True)
        self.body = torch.nn.TransformerEncoder(layer, num_layers=2)
        self.head = torch.nn.Linear(WIDTH, 256)
        # Not in the state_dict, so it is no variable of the job.
        self.register_buffer("mask", torch.full(
            (LENGTH, LENGTH), float("-inf")).triu(1), persistent=False)

    def forward(self, x):
        return self.head(self.body(self.letters(x) + self.places, self.mask))


model = Model()
worker = lockstep.torch.Worker(model)
for step in worker.steps():
    torch.manual_seed(step.seed % 2**63)         # the same dropout if redone
    starts = step.indices(len(text) - LENGTH - 1)
    rows = starts[:, None] + torch.arange(LENGTH + 1)
    x, y = text[rows[:, :-1]], text[rows[:, 1:]]
    loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
    step.backward(loss)
