#!/usr/bin/env python3
"""Holds `hearth plan` against the memory real runs have.

Runs a grid of a few steps each, one fresh process a row, and compares the
largest resident set of that process, less that of a bare start, with what was
predicted. Fails where a prediction is more than 10 % off or more than 5 %
below.

Cases of several row lengths make so many steps that every length comes. In
its short form, which tests run, it takes a case of each kind that prepares
quickly: training, made again, GPT-2's block, adapters, pairs.

  tools/check_plan.py [--hearth build/release/hearth] [--filter TEXT] [--short]
"""

import argparse
import json
import os
import pathlib
import struct
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

# Short documents beside long ones, so that padded rows come in every bucket.
PADDED = ["data.synth=null", "data.train={folder}/mixed.jsonl",
          "data.tokenizer={folder}/base/model",
          "data.cache={folder}/mixed-cache", "data.length=512",
          "data.arrange=pad", "train.tokens_per_step=8192", "train.steps=24"]
# Pairs of answers, the model beside the one it started from.
PAIRS = ["data.synth=null", "data.train={folder}/pairs.jsonl",
         "data.tokenizer={folder}/base/model",
         "data.cache={folder}/pairs-cache", "data.arrange=auto",
         "train.objective=dpo", "train.micro_batch_size=8"]
DORA = ["lora.rank=8", "lora.dora=true",
        "lora.targets=[q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj]"]
# Name, overrides; @ in front: from the base model that is trained first, %:
# from a wider one that is a GGUF file in Q8_0.
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
    ("@dora everywhere", [*DORA]),
    ("@dora everywhere, checkpointed", [*DORA, "train.checkpointing=all"]),
    ("%qdora of a GGUF", [*DORA, "train.micro_batch_size=4"]),
    ("padded buckets", [*PADDED, "train.micro_batch_size=4"]),
    ("padded buckets, whole steps", [*PADDED, "train.micro_batch_size=16"]),
    ("enumerated lengths", ["train.seq_lengths=[64,256,1024]",
                            "train.micro_batch_size=2", "train.steps=9"]),
    ("lengths that do not divide", ["train.seq_lengths=[160,256]",
                                    "train.tokens_per_step=3840",
                                    "train.micro_batch_size=4",
                                    "train.steps=9"]),
    ("%qlora of a GGUF", ["lora.rank=16"]),
    ("%qlora of a GGUF, checkpointed", ["lora.rank=8",
                                        "train.checkpointing=all",
                                        "train.micro_batch_size=4"]),
    ("@qlora, rounded to 4 bits", ["lora.rank=16", "lora.quantize_base=4"]),
    ("@pairs", [*PAIRS]),
    ("@pairs, lora", [*PAIRS, "lora.rank=16"]),
    ("@pairs, checkpointed", [*PAIRS, "train.checkpointing=all"]),
    ("%pairs over a GGUF", [*PAIRS, "train.micro_batch_size=2",
                            "data.length=128", "train.tokens_per_step=512"]),
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

SHORT = ["bf16", "checkpointed", "gpt2", "grouped heads, untied", "@lora",
         "@lora everywhere, checkpointed", "@pairs"]


def write_gguf(path, dim=512, layers=8, ffn=1408, vocab=16384):
    """A llama of small random weights in Q8_0: blocks of a scale and 32 codes."""
    def text(value):
        return struct.pack("<Q", len(value)) + value.encode()

    def u32(key, value):
        return text(key) + struct.pack("<II", 4, value)

    keys = [text("general.architecture") + struct.pack("<I", 8) + text("llama"),
            u32("llama.block_count", layers), u32("llama.context_length", 2048),
            u32("llama.embedding_length", dim),
            u32("llama.feed_forward_length", ffn),
            u32("llama.attention.head_count", dim // 64)]
    shapes = {"token_embd": (vocab, dim), "output_norm": (dim,)}
    for i in range(layers):
        shapes |= {f"blk.{i}.attn_{n}": (dim, dim)
                   for n in ("q", "k", "v", "output")}
        shapes |= {f"blk.{i}.attn_norm": (dim,), f"blk.{i}.ffn_norm": (dim,),
                   f"blk.{i}.ffn_gate": (ffn, dim), f"blk.{i}.ffn_up": (ffn, dim),
                   f"blk.{i}.ffn_down": (dim, ffn)}
    entries, at = b"", 0
    for name, shape in shapes.items():
        matrix = len(shape) == 2
        size = shape[0] * shape[1] // 32 * 34 if matrix else 4 * shape[0]
        entries += (text(name + ".weight") + struct.pack("<I", len(shape))
                    + b"".join(struct.pack("<Q", n) for n in reversed(shape))
                    + struct.pack("<IQ", 8 if matrix else 0, at))
        at += size + -size % 32
    head = (b"GGUF" + struct.pack("<IQQ", 3, len(shapes), len(keys))
            + b"".join(keys) + entries)
    # A row at a time: what this process has held counts as its children's.
    with open(path, "wb") as out:
        out.write(head + bytes(-len(head) % 32))
        for shape in shapes.values():
            for _ in range(shape[0] if len(shape) == 2 else 0):
                codes = os.urandom(shape[1])
                out.write(b"".join(b"\x00\x0a" + codes[i:i + 32]
                                   for i in range(0, len(codes), 32)))
            if len(shape) == 1:
                out.write(struct.pack("<f", 1) * shape[0])
            out.write(bytes(-out.tell() % 32))


def write_mixed(path):
    """Documents of 20 to 2,000 letters."""
    words = "the cat saw a red ball and ran to the old tree by the river "
    with open(path, "w") as out:
        for i in range(3000):
            body = (words * 40)[i % 50:][:20 + (i * 37) % 2000]
            out.write(json.dumps({"text": body}) + "\n")


def write_pairs(path):
    """Prompts with a chosen and a rejected answer of a row's length."""
    words = "the cat saw a red ball and ran to the old tree by the river "
    with open(path, "w") as out:
        for i in range(600):
            out.write(json.dumps({"prompt": (words * 4)[i % 50:][:120],
                                  "chosen": " " + words * 14,
                                  "rejected": " no" * 300}) + "\n")


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


def filled(overrides, folder):
    return [o.replace("{folder}", folder) for o in overrides]


def predicted_mib(hearth, recipe, overrides):
    out = subprocess.run(
        [hearth, "plan", recipe, "--json", *overrides], check=True,
        capture_output=True, text=True).stdout
    return json.loads(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hearth", default="build/release/hearth")
    parser.add_argument("--filter", default="")
    parser.add_argument("--short", action="store_true",
                        help="a few cases, under a minute")
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
        cases = [(name, overrides) for name, overrides in GRID + HELD_OUT
                 if args.filter in name and not (args.short and name not in SHORT)]
        if any(name[0] == "%" for name, _ in cases):
            write_gguf(folder + "/wide.gguf")
        # Prepares the data too, which later rows find ready.
        peak_mib([hearth, "train", recipe, "-o", base, "train.steps=1"])
        if any(overrides[:len(PADDED)] == PADDED for _, overrides in cases):
            write_mixed(folder + "/mixed.jsonl")
            peak_mib([hearth, "train", recipe, "-o", folder + "/mixed",
                      *filled(PADDED, folder), "train.steps=1"])
        if any(overrides[:len(PAIRS)] == PAIRS for _, overrides in cases):
            write_pairs(folder + "/pairs.jsonl")
            peak_mib([hearth, "train", recipe, "-o", folder + "/pairs",
                      f"model.from={base}/model", *filled(PAIRS, folder),
                      "train.steps=1"])
        bare = min(peak_mib([hearth, "--version"]) for _ in range(3))
        print(f"{'case':<34}{'predicted':>10}{'measured':>10}  ratio")
        for name, overrides in cases:
            overrides = filled(overrides, folder)
            if name[0] in "@%":
                start = base + "/model" if name[0] == "@" else folder + "/wide.gguf"
                overrides = [f"model.from={start}",
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
