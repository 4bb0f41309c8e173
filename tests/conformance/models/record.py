#!/usr/bin/env python3
"""Records losses and gradients of small models from PyTorch, as gradients.json.

    python3 tests/conformance/models/record.py

Everything is float64. Inputs and variables follow from formulas that
recorded_gradients_test.cc has too, so only the results are stored. Images are
NHWC and filters HWIO there, NCHW and OIHW in PyTorch.
"""

import json
import math
import pathlib

import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
EPSILON = 1e-5  # of layer norm and batch norm


def wave(count, frequency, phase):
    return torch.tensor(
        [0.5 * math.sin(frequency * i + phase) for i in range(count)])


class Variables:
    """Makes variables in the order in which the model declares them."""

    def __init__(self):
        self.all = []

    def make(self, name, *shape):
        values = wave(math.prod(shape), 0.7, 1.3 * len(self.all) + 0.3)
        variable = values.reshape(shape).requires_grad_()
        self.all.append((name, variable))
        return variable

    def dense(self, name, x, units):
        weights = self.make(name + "/weights", x.shape[-1], units)
        return x @ weights + self.make(name + "/bias", units)

    def filters(self, name, size, channels, count):
        hwio = self.make(name + "/filters", size, size, channels, count)
        return hwio.permute(3, 2, 0, 1)

    def batch_norm(self, name, x):
        channels = x.shape[1]
        scale = self.make(name + "/scale", channels)
        shift = self.make(name + "/shift", channels)
        for moving in "/moving_mean", "/moving_variance":
            self.make(name + moving, channels)
        return F.batch_norm(x, None, None, scale, shift, True, 0, EPSILON)

    def layer_norm(self, name, x):
        width = x.shape[-1]
        scale = self.make(name + "/scale", width)
        shift = self.make(name + "/shift", width)
        return F.layer_norm(x, (width,), scale, shift, EPSILON)


def images(config):
    n, h, w, c = (config[k] for k in ("examples", "height", "width",
                                      "channels"))
    return (0.5 + wave(n * h * w * c, 0.9, 0.1)).reshape(n, h, w, c)


def flat(x):  # of NCHW, as NHWC lies in memory
    return x.permute(0, 2, 3, 1).flatten(1)


def softmax(v, config):
    return v.dense("softmax", images(config).flatten(1), config["classes"])


def mlp(v, config):
    x = images(config).flatten(1)
    for i, units in enumerate(config["hidden_units"]):
        x = F.relu(v.dense(f"hidden{i + 1}", x, units))
    return v.dense("logits", x, config["classes"])


def cnn(v, config):
    x = images(config).permute(0, 3, 1, 2)
    for i, count in enumerate(config["conv_filters"]):
        name = f"conv{i + 1}"
        filters = v.filters(name, 3, x.shape[1], count)
        x = F.relu(F.conv2d(x, filters, v.make(name + "/bias", count),
                            padding=1))
        x = F.max_pool2d(x, 2, ceil_mode=True)
    x = flat(x)
    for i, units in enumerate(config["hidden_units"]):
        x = F.relu(v.dense(f"hidden{i + 1}", x, units))
    return v.dense("logits", x, config["classes"])


def resnet(v, config):
    def normalised(name, x, size, count, stride):
        filters = v.filters(name, size, x.shape[1], count)
        x = F.conv2d(x, filters, stride=stride, padding=size // 2)
        return v.batch_norm(name + "/norm", x)

    def block(name, x, count, stride):
        branch = F.relu(normalised(name + "/conv1", x, 3, count, stride))
        branch = normalised(name + "/conv2", branch, 3, count, 1)
        if x.shape[1] != count or stride != 1:
            x = normalised(name + "/shortcut", x, 1, count, stride)
        return F.relu(branch + x)

    stages = config["conv_filters"]
    x = images(config).permute(0, 3, 1, 2)
    x = F.relu(normalised("conv", x, 3, stages[0], 1))
    for stage, count in enumerate(stages):
        for i in range(config["layers"]):
            stride = 2 if stage > 0 and i == 0 else 1
            x = block(f"stage{stage + 1}/block{i + 1}", x, count, stride)
    return v.dense("logits", x.mean((2, 3)), config["classes"])


def transformer(v, config):
    n, t, d = config["examples"], config["tokens"], config["width"]
    heads = config["heads"]
    tokens = torch.tensor([i * 7 % config["classes"] for i in range(n * t)])
    table = v.make("embedding/tokens", config["classes"], d)
    x = table[tokens.reshape(n, t)] + v.make("embedding/positions", t, d)

    def attention(name, x):
        qkv = v.dense(name + "/qkv", v.layer_norm(name + "/norm1", x), 3 * d)
        q, k, val = (part.reshape(n, t, heads, d // heads).transpose(1, 2)
                     for part in qkv.split(d, dim=2))
        scores = q @ k.transpose(2, 3) / math.sqrt(d // heads)
        future = torch.ones(t, t, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(future, -math.inf).softmax(3)
        joined = (weights @ val).transpose(1, 2).reshape(n, t, d)
        return v.dense(name + "/attention", joined, d)

    def gelu(x):  # the approximation by tanh
        return 0.5 * x * (1 + torch.tanh(
            math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))

    def feed_forward(name, x):
        x = v.dense(name + "/hidden", v.layer_norm(name + "/norm2", x), 4 * d)
        return v.dense(name + "/mlp", gelu(x), d)

    for i in range(config["layers"]):
        x = x + attention(f"block{i + 1}", x)
        x = x + feed_forward(f"block{i + 1}", x)
    return v.dense("logits", v.layer_norm("norm", x), config["classes"])


def record(kind, model, config):
    variables = Variables()
    logits = model(variables, config).reshape(-1, config["classes"])
    labels = torch.arange(len(logits)) % config["classes"]
    loss = F.cross_entropy(logits, labels)
    loss.backward()
    gradients = {name: v.grad.flatten().tolist()
                 for name, v in variables.all if v.grad is not None}
    return {"kind": kind, **config, "loss": loss.item(),
            "variables": [name for name, _ in variables.all],
            "gradients": gradients}


PICTURES = {"examples": 4, "height": 5, "width": 3, "channels": 2,
            "classes": 3}


def main():
    models = [
        record("softmax", softmax, PICTURES),
        record("mlp", mlp, {**PICTURES, "hidden_units": [5, 4]}),
        record("cnn", cnn, {**PICTURES, "conv_filters": [3, 2],
                            "hidden_units": [4]}),
        record("resnet", resnet, {**PICTURES, "conv_filters": [2, 3],
                                  "layers": 1}),
        record("transformer", transformer,
               {"examples": 2, "tokens": 5, "classes": 6, "layers": 2,
                "heads": 2, "width": 4}),
    ]
    path = pathlib.Path(__file__).with_name("gradients.json")
    path.write_text(json.dumps({"torch": torch.__version__,
                                "models": models}, indent=0) + "\n")


main()
