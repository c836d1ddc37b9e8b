#!/usr/bin/env python3
"""Holds the validation curves of a sweep's runs against each other.

  tools/compare_curves.py runs/sweep-adamw8bit optim.name

The runs are grouped by the key; at each validation the groups' means over the
other values (seeds) are compared with the spread between those. Exit 1 when at
some point the means differ by more than twice the standard error that the
seeds' spread gives the difference, or 1 % of the loss where that is more.
"""
import argparse
import collections
import json
import pathlib
import statistics
import sys


def curves(folder, key):
    """{value of the key: [{step: validation loss}]}"""
    found = collections.defaultdict(list)
    for row in json.loads((folder / "sweep.json").read_text())["rows"]:
        lines = (folder / row["run"] / "metrics.jsonl").read_text().splitlines()
        steps = [json.loads(line) for line in lines]
        found[str(row["values"][key])].append({s["step"]: s["valid_loss"] for s in steps if "valid_loss" in s})
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("key")
    args = parser.parse_args()
    found = curves(args.folder, args.key)
    (a, first), (b, second) = sorted(found.items())[:2]
    print(f"| step | {a} | {b} | difference | noise |\n|---|---|---|---|---|")
    outside = []
    for step in sorted(first[0]):
        x, y = [c[step] for c in first], [c[step] for c in second]
        noise = 2 * (statistics.variance(x) / len(x) + statistics.variance(y) / len(y)) ** 0.5
        apart = statistics.mean(y) - statistics.mean(x)
        outside += [step] if abs(apart) > max(noise, 0.01 * statistics.mean(x)) else []
        print(f"| {step} | {statistics.mean(x):.4f} | {statistics.mean(y):.4f} | {apart:+.4f} | {noise:.4f} |")
    print("within noise" if not outside else f"outside at steps {outside}")
    return 1 if outside else 0


if __name__ == "__main__":
    sys.exit(main())
