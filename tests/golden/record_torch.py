#!/usr/bin/env python3
"""Records what torch.optim does, as torch_optimizer.jsonl.

    record_torch.py --out DIRECTORY [--seed N]

Needs PyTorch and nothing else; README.md describes the file. Parameters have
few elements, so that the file stays small: the rules are elementwise.
"""

import argparse
import json
import pathlib

import torch

STEPS = 200
ELEMENTS = 4

# Names are those of the job file; optimizers take them as below.
SCENARIOS = [
    ("sgd", "SGD", {"learning_rate": 0.1}),
    ("sgd_decay", "SGD", {"learning_rate": 0.05, "weight_decay": 0.02}),
    ("sgd_momentum", "SGD", {"learning_rate": 0.05, "momentum": 0.9}),
    ("sgd_dampening", "SGD", {"learning_rate": 0.05, "momentum": 0.8,
                              "dampening": 0.3, "weight_decay": 0.01}),
    ("sgd_nesterov", "SGD", {"learning_rate": 0.03, "momentum": 0.9,
                             "use_nesterov": True, "weight_decay": 5e-4}),
    ("adam", "ADAM_TORCH", {"learning_rate": 1e-3}),
    ("adam_odd", "ADAM_TORCH", {"learning_rate": 0.02, "beta1": 0.7,
                                "beta2": 0.95, "epsilon": 1e-3,
                                "weight_decay": 0.1}),
    ("adamw", "ADAMW", {"learning_rate": 3e-4}),
    ("adamw_decay", "ADAMW", {"learning_rate": 0.01, "weight_decay": 0.1,
                              "beta2": 0.95}),
    ("adamw_absent", "ADAMW", {"learning_rate": 0.01}),
]


def make_optimizer(kind, hyper, parameter):
    hyper = dict(hyper)
    rate = hyper.pop("learning_rate")
    if kind == "SGD":
        hyper["nesterov"] = hyper.pop("use_nesterov", False)
        return torch.optim.SGD([parameter], lr=rate, **hyper)
    hyper["betas"] = (hyper.pop("beta1", 0.9), hyper.pop("beta2", 0.999))
    hyper["eps"] = hyper.pop("epsilon", 1e-8)
    cls = torch.optim.Adam if kind == "ADAM_TORCH" else torch.optim.AdamW
    return cls([parameter], lr=rate, foreach=False, **hyper)


def numbers(tensor):
    return [float("%.9g" % x) for x in tensor.tolist()]


def record(name, kind, hyper, seed):
    generator = torch.Generator().manual_seed(seed)
    parameter = torch.nn.Parameter(torch.randn(ELEMENTS, generator=generator))
    scenario = {"format": 1, "file": "torch_optimizer", "name": name,
                "torch": torch.__version__, "kind": kind, "hyper": hyper,
                "dtype": "float32", "initial": numbers(parameter.data)}
    optimizer = make_optimizer(kind, hyper, parameter)
    steps = []
    updates = 0
    for step in range(STEPS):
        absent = name.endswith("absent") and step % 3 == 1
        # Sizes of gradients differ by orders of magnitude, as those of layers.
        scale = 10.0 ** (step % 5 - 3)
        gradient = scale * torch.randn(ELEMENTS, generator=generator)
        parameter.grad = None if absent else gradient
        optimizer.step()
        updates += 0 if absent else 1
        state = optimizer.state[parameter]
        slots = {key: numbers(value) for key, value in state.items()
                 if key != "step" and value is not None}
        steps.append({"gradient": None if absent else numbers(gradient),
                      "value": numbers(parameter.data), "slots": slots,
                      "updates": updates})
    return {**scenario, "steps": steps}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=pathlib.Path, required=True,
                        help="directory that the file goes to")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    with open(arguments.out / "torch_optimizer.jsonl", "w") as file:
        for i, (name, kind, hyper) in enumerate(SCENARIOS):
            scenario = record(name, kind, hyper, arguments.seed * 1000 + i)
            file.write(json.dumps(scenario, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
