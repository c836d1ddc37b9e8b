#!/usr/bin/env python3
"""Holds the golden steps of Adafactor against transformers' own.

  check_adafactor.py GOLDEN [--write]

GOLDEN is tests/golden/adafactor.json, which the C++ unit test of
ops/adafactor_step replays. --write makes it anew. Exit 77: transformers or
torch is not installed.
"""
import argparse
import json
import sys

import peers

try:
    import torch
    from transformers.optimization import Adafactor
except ImportError as error:
    peers.skip(error)

STEPS = 4
CASES = [
    {"shape": [5, 7], "lr": 0.05},
    {"shape": [19], "lr": 0.05, "beta1": 0.9},
    {"shape": [3, 4, 6], "lr": 0.02, "decay": 0.1, "clip": 0.5},
    {"shape": [260, 2], "lr": 0.1, "beta1": 0.8, "decay": 0.01,
     "scale_by_size": True},
]


def run(case, seed):
    g = torch.Generator().manual_seed(seed)
    w = torch.nn.Parameter(torch.randn(case["shape"], generator=g) * 0.1)
    optimizer = Adafactor(
        [w], lr=case["lr"], beta1=case.get("beta1"),
        weight_decay=case.get("decay", 0.0), clip_threshold=case.get("clip", 1.0),
        scale_parameter=case.get("scale_by_size", False), relative_step=False)
    flat = lambda t: [float(f"{v:.9g}") for v in t.detach().flatten().tolist()]
    result = dict(case, start=flat(w), gradients=[])
    for _ in range(STEPS):
        w.grad = torch.randn(case["shape"], generator=g)
        result["gradients"].append(flat(w.grad))
        optimizer.step()
    result["end"] = flat(w)
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("golden")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    cases = [run(case, 7 + i) for i, case in enumerate(CASES)]
    if arguments.write:
        with open(arguments.golden, "w") as f:
            json.dump({"made_by": "tools/check_adafactor.py --write", "cases": cases}, f)
            f.write("\n")
        return 0
    with open(arguments.golden) as f:
        kept = json.load(f)["cases"]
    if len(kept) != len(cases):
        print("the golden file has other cases than this script")
        return 1
    worst = max(abs(a - b) for k, c in zip(kept, cases)
                for a, b in zip(k["end"], c["end"]))
    print(f"largest difference of a weight: {worst:.3g}")
    return 0 if worst < 1e-5 else 1


if __name__ == "__main__":
    sys.exit(main())
