#!/usr/bin/env python3
"""S1's presets: what they were estimated to take, what `hearth plan` predicts,
and what a fresh process of `hearth train` really has.

  tools/check_s1.py [--hearth build/release/hearth] [--only conservative]

S1 counts 16 bytes a parameter and batch x context x width x layers x 4 bytes of
activations. Two steps are trained; the peak is the process's largest resident
set less that of a bare start.
"""
import argparse
import os
import pathlib
import subprocess
import tempfile

from check_plan import peak_mib, predicted_mib

ROOT = pathlib.Path(__file__).resolve().parent.parent
SIZES = {  # batch, context, width, layers
    "original": (32, 10, 64, 2),
    "conservative": (1024, 32, 256, 4),
    "balanced": (1024, 48, 384, 6),
    "aggressive": (1024, 64, 512, 8),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hearth", default="build/release/hearth")
    parser.add_argument("--only", default="")
    parser.add_argument("--steps", type=int, default=2)
    args = parser.parse_args()
    hearth = str(pathlib.Path(args.hearth).resolve())
    print("| preset | parameters | S1's estimate | hearth plan | measured | measured / S1's |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("HEARTH_CACHE", folder + "/cache")
        subprocess.run([hearth, "data", "prepare", str(ROOT / "recipes/s1-original.yaml")], check=True,
                       capture_output=True)
        bare = min(peak_mib([hearth, "--version"]) for _ in range(3))
        for name, (batch, context, width, layers) in SIZES.items():
            if args.only not in name:
                continue
            recipe = str(ROOT / f"recipes/s1-{name}.yaml")
            plan = predicted_mib(hearth, recipe, [])
            said = (16 * plan["parameters"] + batch * context * width * layers * 4) / 2**20
            took = peak_mib([hearth, "train", recipe, "-o", f"{folder}/{name}", f"train.steps={args.steps}",
                             "train.eval_tokens=2048"]) - bare
            print(f"| {name} | {plan['parameters'] / 1e6:.2f} M | {said:.0f} MiB | {plan['peak_mib']:.0f} MiB | "
                  f"{took:.0f} MiB | {took / said:.2f} |", flush=True)


if __name__ == "__main__":
    main()
