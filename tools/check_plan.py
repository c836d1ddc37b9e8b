#!/usr/bin/env python3
"""Holds `hearth plan` against the memory real runs have.

Runs a grid of a few steps each, one fresh process a row, and compares the
largest resident set of that process, less that of a bare start, with what was
predicted. Fails where a prediction is more than 10 % off or more than 5 %
below.

  tools/check_plan.py [--hearth build/release/hearth] [--filter TEXT]
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

BASE = """
model: {{arch: llama, dim: 256, layers: 4, heads: 4, ffn: 704, tie: true}}
data: {{synth: {{kind: stories, n: 3000, seed: 1}}, valid: 2%,
       tokenizer: {{train: {{vocab: 2048}}}}, length: 256, arrange: stream}}
train: {{tokens_per_step: 4096, steps: 3, micro_batch_size: 16,
        eval_tokens: 2048}}
run: {{dir: {run}, seed: 7}}
"""

# Name, overrides; @ in front: from the base model that is trained first.
GRID = [
    ("bf16", []),
    ("fp32", ["train.precision=fp32"]),
    ("checkpointed", ["train.checkpointing=all"]),
    ("every second", ["train.checkpointing=2", "model.layers=6"]),
    ("accumulated", ["train.micro_batch_size=4"]),
    ("uneven rows", ["train.micro_batch_size=6"]),
    ("long rows", ["data.length=1024", "train.micro_batch_size=4"]),
    ("deep", ["model.layers=12", "model.dim=192", "model.heads=6",
              "model.ffn=512"]),
    ("wide fp32 checkpointed", ["model.dim=384", "model.ffn=1024",
                                "model.heads=6", "train.precision=fp32",
                                "train.checkpointing=all"]),
    ("wide", ["model.dim=512", "model.heads=8", "model.ffn=1408",
              "train.micro_batch_size=8"]),
    ("grouped heads, untied", ["model.kv_heads=1", "model.tie=false"]),
    ("gpt2", ["model.arch=gpt2", "model.ffn=1024"]),
    ("qwen3", ["model.arch=qwen3"]),
    ("large vocabulary", ["model.vocab=24576"]),
    ("8-bit state", ["model.dim=512", "model.heads=8", "model.ffn=1408",
                     "optim.name=adamw8bit", "train.micro_batch_size=4"]),
    ("muon", ["optim.name=muon"]),
    ("lion, together", ["optim.name=lion", "train.micro_batch_size=4",
                        "train.eval_interval=2"]),
    ("rows that grow", ["train.micro_batch_size=0",
                        "train.tokens_per_step=16384"]),
    ("sixteen together", ["train.micro_batch_size=1",
                          "train.eval_interval=16"]),
    ("head packed alone", ["model.dim=512", "model.heads=8", "model.ffn=1408",
                           "train.packed=head", "train.micro_batch_size=2"]),
    ("@lora", ["lora.rank=16"]),
    ("@lora everywhere, checkpointed",
     ["lora.rank=8", "lora.targets=[q_proj,k_proj,v_proj,o_proj,gate_proj,"
      "up_proj,down_proj]", "train.checkpointing=all"]),
    ("@full fine-tune fp32", ["train.precision=fp32",
                              "train.micro_batch_size=8"]),
]
# Not among those the model of memory was fitted to.
HELD_OUT = [
    ("held out: gpt2, short rows", ["model.arch=gpt2", "model.dim=320",
                                    "model.heads=5", "model.layers=5",
                                    "model.ffn=1280", "data.length=64",
                                    "train.micro_batch_size=64"]),
    ("held out: qwen2, adafactor, fp32",
     ["model.arch=qwen2", "model.kv_heads=2", "optim.name=adafactor",
      "train.precision=fp32", "train.micro_batch_size=8"]),
    ("held out: every third, vocabulary",
     ["model.vocab=12288", "model.layers=9", "model.dim=192", "model.heads=6",
      "model.ffn=512", "train.checkpointing=3"]),
    ("@held out: lora on MLP",
     ["lora.rank=4", "lora.targets=[gate_proj,up_proj,down_proj]",
      "data.length=512", "train.micro_batch_size=6"]),
]


def peak_mib(command):
    """The command's largest resident set, in MiB."""
    with tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=err)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = status
        if status != 0:
            err.seek(0)
            text = err.read().decode(errors="replace")
            raise RuntimeError(f"{' '.join(command)}: {text[-600:]}")
    return usage.ru_maxrss / 1024


def predicted_mib(hearth, recipe, overrides):
    out = subprocess.run(
        [hearth, "plan", recipe, "--json", *overrides], check=True,
        capture_output=True, text=True).stdout
    return json.loads(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hearth", default="build/release/hearth")
    parser.add_argument("--filter", default="")
    parser.add_argument("--parts", action="store_true",
                        help="show the parts of each prediction")
    args = parser.parse_args()
    hearth = str(pathlib.Path(args.hearth).resolve())
    worst = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("HEARTH_CACHE", folder + "/cache")
        recipe, run = folder + "/recipe.yaml", folder + "/run"
        pathlib.Path(recipe).write_text(BASE.format(run=run))
        base = folder + "/base"
        # Prepares the data too, which later rows find ready.
        peak_mib([hearth, "train", recipe, "-o", base, "train.steps=1"])
        bare = min(peak_mib([hearth, "--version"]) for _ in range(3))
        print(f"{'case':<34}{'predicted':>10}{'measured':>10}  ratio")
        for name, overrides in GRID + HELD_OUT:
            if args.filter not in name:
                continue
            if name.startswith("@"):
                overrides = [f"model.from={base}/model",
                             f"data.tokenizer={base}/model", *overrides]
            plan = predicted_mib(hearth, recipe, overrides)
            measured = peak_mib(
                [hearth, "train", recipe, "--force", *overrides]) - bare
            ratio = plan["peak_mib"] / measured
            verdict = "" if 0.95 <= ratio <= 1.10 else "  OUTSIDE"
            worst += [name] if verdict else []
            print(f"{name:<34}{plan['peak_mib']:>10.1f}{measured:>10.1f}"
                  f"  {ratio:.3f}{verdict}", flush=True)
            if args.parts:
                print("   ", {k: round(v / 2**20, 1)
                              for k, v in plan["memory"].items()})
    print("all within" if not worst else "outside: " + ", ".join(worst))
    return 1 if worst else 0


if __name__ == "__main__":
    sys.exit(main())
