#!/usr/bin/python3
"""Plots the figures of recovery_benchmark.

    build/release/bin/recovery_benchmark > recovery.jsonl
    tests/benchmark/plot_recovery.py recovery.jsonl recovery.png

Needs the Debian package python3-matplotlib.
"""

import sys

from plot_growth import load_matplotlib, read


def main():
    if len(sys.argv) != 3 or sys.argv[1] in ("-h", "--help"):
        sys.exit(__doc__.strip())
    pyplot = load_matplotlib()
    lines = [line for line in read(sys.argv[1]) if "killed" in line]
    if not lines:
        sys.exit(f"{sys.argv[1]} has no line of recovery_benchmark")
    sizes = sorted({line["megabytes"] for line in lines})
    roles = list(dict.fromkeys(line["killed"] for line in lines))
    figure, axes = pyplot.subplots(figsize=(8, 4.5))
    width = 0.8 / len(sizes)
    for i, size in enumerate(sizes):
        for line in (line for line in lines if line["megabytes"] == size):
            x = roles.index(line["killed"]) + (i - (len(sizes) - 1) / 2) * width
            axes.bar(x, line["median_ms"], 0.9 * width, color=f"C{i}",
                     label=f"{size} MB" if line["killed"] == roles[0] else None)
            axes.plot([x, x], [min(line["going_on_ms"]),
                               max(line["going_on_ms"])], color="black")
            axes.plot([x - width / 2, x + width / 2], [line["goal_ms"]] * 2,
                      color="red")
    axes.set_xticks(range(len(roles)), roles)
    axes.set_ylabel("ms from being up to going on; red: goal")
    axes.grid(True, axis="y", alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(sys.argv[2], dpi=120)


if __name__ == "__main__":
    main()
