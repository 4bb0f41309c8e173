#!/usr/bin/python3
"""Plots the growth figures of step_benchmark.

    tests/benchmark/cubic.sh build/release/bin/step_benchmark \\
        --compare growth > growth.jsonl
    tests/benchmark/plot_growth.py growth.jsonl growth.png

Needs the Debian package python3-matplotlib.
"""

import json
import sys


def load_matplotlib():
    """Returns pyplot, drawing without a screen."""
    try:
        import matplotlib
    except ImportError:
        sys.exit("plot_growth.py needs matplotlib: "
                 "apt-get install python3-matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot
    return pyplot


def read(path):
    """Returns the JSON lines of a file; other lines are passed over."""
    lines = []
    with open(path, encoding="utf-8") as file:
        for text in file:
            if text.startswith("{"):
                lines.append(json.loads(text))
    return lines


def series(lines, comparison, system, key):
    """Returns (x, median, lowest, highest) of one system, sorted by x."""
    points = [(line[key], line["step_ms"], min(line["round_ms"]),
               max(line["round_ms"])) for line in lines
              if comparison in line["comparisons"]
              and line["system"] == system]
    return list(zip(*sorted(points)))


def draw(axes, lines, comparison, key, label):
    """Draws step times with the range of their rounds, logarithmically."""
    for system in ("lockstep", "tcp"):
        points = series(lines, comparison, system, key)
        if not points:
            continue
        x, median, lowest, highest = points
        if key == "bytes":
            x = [value / 2**20 for value in x]
        axes.plot(x, median, marker="o", label=system)
        axes.fill_between(x, lowest, highest, alpha=0.2)
    axes.set_xscale("log", base=2 if key == "workers" else 10)
    axes.set_yscale("log" if key == "bytes" else "linear")
    if key == "workers":
        axes.set_ylim(bottom=0)
        axes.xaxis.set_major_formatter("{x:.0f}")
    axes.set_xlabel(label)
    axes.set_ylabel("ms per global step")
    axes.grid(True, alpha=0.3)
    axes.legend()


def main():
    if len(sys.argv) != 3 or sys.argv[1] in ("-h", "--help"):
        sys.exit(__doc__.strip())
    pyplot = load_matplotlib()
    lines = read(sys.argv[1])
    if not any("growth" in name for line in lines
               for name in line["comparisons"]):
        sys.exit(f"{sys.argv[1]} has no line of a growth comparison; "
                 "run step_benchmark --compare growth")
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.5))
    draw(left, lines, "growth_workers", "workers",
         "workers; as many bytes in all")
    draw(right, lines, "growth_sizes", "bytes", "size of the model, MiB")
    figure.suptitle(f"loopback, {lines[0]['congestion_control']}")
    figure.tight_layout()
    figure.savefig(sys.argv[2], dpi=120)


if __name__ == "__main__":
    main()
