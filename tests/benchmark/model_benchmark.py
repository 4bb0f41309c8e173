#!/usr/bin/env python3
"""Times passes of whole models: a worker's code next to PyTorch, in turn.

    python3 tests/benchmark/model_benchmark.py [--device cuda] [CASE...]

Needs build/release/bin/model_benchmark and a Python with torch. Prints for
each case the milliseconds of a pass (forward and backward of one batch; the
variables are not updated), medians over the rounds, and PyTorch's time divided
by ours: above 1 we are faster.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

PICTURES = dict(image_height=28, image_width=28, channels=1, classes=10)
CASES = {
    "mlp": dict(kind="mlp", hidden_units=[512, 512], batch=128, **PICTURES),
    "mlp_small": dict(kind="mlp", hidden_units=[256], batch=128, **PICTURES),
    "mlp_8192": dict(kind="mlp", hidden_units=[8192, 8192], batch=8192,
                     **PICTURES),
    "cnn": dict(kind="cnn", conv_filters=[16, 32], hidden_units=[128],
                batch=64, **PICTURES),
    "resnet": dict(kind="resnet", conv_filters=[16, 32, 64], layers=3,
                   batch=64, **PICTURES),
    "gpt_tiny": dict(kind="transformer", layers=4, heads=4, width=128,
                     tokens=128, classes=256, batch=8),
    "gpt_124m": dict(kind="transformer", layers=12, heads=12, width=768,
                     tokens=1024, classes=256, batch=8),
}
ON_CPU = ["mlp", "mlp_small", "cnn", "resnet", "gpt_tiny"]


class Mlp(nn.Sequential):
    def __init__(self, inputs, c):
        layers = [nn.Flatten()]
        for units in c.get("hidden_units", []):
            layers += [nn.Linear(inputs, units), nn.ReLU()]
            inputs = units
        super().__init__(*layers, nn.Linear(inputs, c["classes"]))


def mlp(c):
    return Mlp(c["image_height"] * c["image_width"] * c["channels"], c)


def cnn(c):
    layers, channels = [], c["channels"]
    height, width = c["image_height"], c["image_width"]
    for count in c["conv_filters"]:
        layers += [nn.Conv2d(channels, count, 3, padding=1), nn.ReLU(),
                   nn.MaxPool2d(2, ceil_mode=True)]
        height, width, channels = (height + 1) // 2, (width + 1) // 2, count
    return nn.Sequential(*layers, Mlp(height * width * channels, c))


class Block(nn.Module):
    def __init__(self, channels, count, stride):
        super().__init__()
        self.branch = nn.Sequential(
            nn.Conv2d(channels, count, 3, stride, 1, bias=False),
            nn.BatchNorm2d(count), nn.ReLU(),
            nn.Conv2d(count, count, 3, 1, 1, bias=False),
            nn.BatchNorm2d(count))
        self.shortcut = nn.Identity() if (channels, stride) == (count, 1) else (
            nn.Sequential(nn.Conv2d(channels, count, 1, stride, bias=False),
                          nn.BatchNorm2d(count)))

    def forward(self, x):
        return F.relu(self.branch(x) + self.shortcut(x))


def resnet(c):
    channels = c["conv_filters"][0]
    layers = [nn.Conv2d(c["channels"], channels, 3, 1, 1, bias=False),
              nn.BatchNorm2d(channels), nn.ReLU()]
    for stage, count in enumerate(c["conv_filters"]):
        for i in range(c["layers"]):
            layers.append(Block(channels, count,
                                2 if stage > 0 and i == 0 else 1))
            channels = count
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(channels, c["classes"]))


class Layer(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.hidden, self.mlp = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        n, t, d = x.shape
        q, k, v = (part.reshape(n, t, self.heads, -1).transpose(1, 2)
                   for part in self.qkv(self.norm1(x)).split(d, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(n, t, d))
        hidden = F.gelu(self.hidden(self.norm2(x)), approximate="tanh")
        return x + self.mlp(hidden)


class Transformer(nn.Module):
    def __init__(self, c):
        super().__init__()
        d = c["width"]
        self.tokens = nn.Embedding(c["classes"], d)
        self.positions = nn.Parameter(torch.zeros(c["tokens"], d))
        self.layers = nn.Sequential(
            *(Layer(d, c["heads"]) for _ in range(c["layers"])))
        self.norm = nn.LayerNorm(d)
        self.logits = nn.Linear(d, c["classes"])

    def forward(self, ids):
        x = self.tokens(ids) + self.positions
        return self.logits(self.norm(self.layers(x))).flatten(0, 1)


MODELS = {"mlp": mlp, "cnn": cnn, "resnet": resnet, "transformer": Transformer}


class PyTorch:
    def __init__(self, c, args):
        device = args.device
        self.model = MODELS[c["kind"]](c).to(device)
        if args.compile:
            self.model = torch.compile(self.model)
        n = c["batch"]
        if "tokens" in c:
            self.x = torch.randint(c["classes"], (n, c["tokens"])).to(device)
            n *= c["tokens"]
        else:
            self.x = torch.rand(n, c["channels"], c["image_height"],
                                c["image_width"]).to(device)
        self.labels = (torch.arange(n) % c["classes"]).to(device)
        self.autocast = torch.autocast(device, torch.bfloat16,
                                       enabled=args.precision == "bfloat16")
        torch.set_float32_matmul_precision(
            "high" if args.precision == "tf32" else "highest")
        self.device = device

    def passes(self, count):
        began = time.perf_counter()
        for _ in range(count):
            self.model.zero_grad(set_to_none=True)
            with self.autocast:
                loss = F.cross_entropy(self.model(self.x), self.labels)
            loss.backward()
        if self.device == "cuda":
            torch.cuda.synchronize()
        return (time.perf_counter() - began) / count * 1e3


class Ours:
    def __init__(self, c, args):
        flags = [f"--device={args.device}", f"--threads={args.threads}",
                 f"--precision={args.precision}"]
        for key, value in c.items():
            values = value if isinstance(value, list) else [value]
            flags += [f"--{key}", *map(str, values)]
        self.process = subprocess.Popen(
            [args.program, *flags], text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE)
        self.name = self.answer()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("model_benchmark has ended, see above")
        return line.strip()

    def passes(self, count):
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        return float(self.answer())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def compare(name, args):
    ours, peer = Ours(CASES[name], args), PyTorch(CASES[name], args)
    peer.passes(3)  # warms up
    count = max(1, int(args.milliseconds / ours.passes(1)))
    times = [(ours.passes(count), peer.passes(count))
             for _ in range(args.rounds)]
    ours.close()
    ratios = sorted(theirs / mine for mine, theirs in times)
    row = {"case": name, "device": ours.name,
           "ours_ms": statistics.median(t[0] for t in times),
           "pytorch_ms": statistics.median(t[1] for t in times),
           "ratio": statistics.median(ratios), "low": ratios[0],
           "high": ratios[-1]}
    print("%-10s %9.2f ms %9.2f ms   %5.2f  [%.2f, %.2f]" %
          (name, row["ours_ms"], row["pytorch_ms"], row["ratio"], row["low"],
           row["high"]), flush=True)
    if args.json:
        print(json.dumps(row), flush=True)


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="CASE",
                        help=", ".join(CASES))
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--precision", default="float32",
                        choices=["float32", "tf32", "bfloat16"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--milliseconds", type=float, default=500,
                        help="of each turn, about")
    parser.add_argument("--compile", action="store_true",
                        help="torch.compile, in place of eager mode")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--program",
                        default=root / "build/release/bin/model_benchmark")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    print("%-10s %12s %12s %7s" % ("pass of", "ours", "PyTorch", "ratio"))
    for name in args.cases or (ON_CPU if args.device == "cpu" else CASES):
        compare(name, args)


main()
