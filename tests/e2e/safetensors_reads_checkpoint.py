"""Opens checkpoints with the safetensors library itself.

usage: safetensors_reads_checkpoint.py SAMPLE_DIR [CHECKPOINT_DIR]

SAMPLE_DIR is what write_sample_checkpoint made; every number is compared.
CHECKPOINT_DIR, of a real run, may be the directory of all checkpoints or one
step-... in it; form, hashes and finiteness are checked.
"""

import hashlib
import json
import pathlib
import sys

import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file

FILES = ("model.safetensors", "optimizer.safetensors")


def require(condition, message):
    if not condition:
        sys.exit(f"FAILED: {message}")


def rising(start, shape, dtype):
    """The values of write_sample_checkpoint: start + i / 4."""
    count = int(np.prod(shape, dtype=np.int64))
    values = dtype(start) + np.arange(count).astype(dtype) / dtype(4)
    return values.reshape(shape)


EXPECTED = {
    "model.safetensors": {
        "hidden1/weights": rising(0.5, (3, 5), np.float32),
        "hidden1/biases": rising(-2, (5,), np.float32),
        "wide": rising(1e10, (2, 2), np.float64),
        "narrow": rising(1, (3,), np.float16),
        "empty": rising(0, (0, 4), np.float32),
    },
    "optimizer.safetensors": {
        "hidden1/weights/Momentum": rising(100, (3, 5), np.float32),
        "beta1_power": rising(0.75, (), np.float32),
        "global_step": np.array(1500, dtype=np.int64),
    },
}


def check_manifest(step_dir):
    """Every file is as long, and hashes, as the manifest says."""
    manifest = json.loads((step_dir / "manifest.json").read_text())
    require(manifest["format_version"] == 1, f"{step_dir}: format_version")
    require(step_dir.name == f"step-{manifest['global_step']:08d}",
            f"{step_dir}: global_step is {manifest['global_step']}")
    require({f["name"] for f in manifest["files"]} == set(FILES),
            f"{step_dir}: files are {manifest['files']}")
    for file in manifest["files"]:
        data = (step_dir / file["name"]).read_bytes()
        require(len(data) == file["bytes"], f"{step_dir}/{file['name']}: bytes")
        require(hashlib.sha256(data).hexdigest() == file["sha256"],
                f"{step_dir}/{file['name']}: sha256")
    return manifest


def check_metadata(step_dir, step):
    for name in FILES:
        with safe_open(step_dir / name, framework="numpy") as file:
            metadata = file.metadata()
        require(metadata == {"format": "lockstep", "global_step": str(step)},
                f"{step_dir}/{name}: metadata is {metadata}")


def check_sample(step_dir):
    manifest = check_manifest(step_dir)
    check_metadata(step_dir, manifest["global_step"])
    for name, expected in EXPECTED.items():
        found = load_file(step_dir / name)
        require(found.keys() == expected.keys(),
                f"{name}: tensors are {sorted(found)}")
        for tensor, want in expected.items():
            got = found[tensor]
            require(got.dtype == want.dtype and got.shape == want.shape,
                    f"{name}: {tensor} is {got.dtype} {got.shape}")
            require(np.array_equal(got, want), f"{name}: {tensor} is {got}")
            print(f"{name}: {tensor} {got.dtype} {list(got.shape)} agrees")


def check_real(step_dir):
    manifest = check_manifest(step_dir)
    check_metadata(step_dir, manifest["global_step"])
    model = load_file(step_dir / "model.safetensors")
    optimizer = load_file(step_dir / "optimizer.safetensors")
    require(model, f"{step_dir}: no variables")
    require(not model.keys() & optimizer.keys(), f"{step_dir}: shared names")
    require(int(optimizer["global_step"]) == manifest["global_step"],
            f"{step_dir}: global_step is {optimizer.get('global_step')}")
    for name, tensor in {**model, **optimizer}.items():
        require(np.all(np.isfinite(tensor)), f"{step_dir}: {name} not finite")
        print(f"{step_dir.name}: {name} {tensor.dtype} {list(tensor.shape)}")


def step_dirs(directory):
    directory = pathlib.Path(directory)
    if directory.name.startswith("step-"):
        return [directory]
    return sorted(directory.glob("step-*"))


def main(arguments):
    require(1 <= len(arguments) <= 2, __doc__)
    sample = step_dirs(arguments[0])
    require(len(sample) == 1, f"{arguments[0]}: holds {len(sample)} checkpoints")
    check_sample(sample[0])
    if len(arguments) == 2:
        real = step_dirs(arguments[1])
        require(real, f"{arguments[1]}: holds no checkpoint")
        for step_dir in real:
            check_real(step_dir)
    print("OK")


if __name__ == "__main__":
    main(sys.argv[1:])
