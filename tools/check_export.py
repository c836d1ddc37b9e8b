#!/usr/bin/env python3
"""Holds `hearth export` against transformers, peft and PyPI's gguf.

  check_export.py HEARTH [--only WORD]

gguf: models of every family as GGUF files in F32, F16, BF16, Q8_0, Q4_0, Q4_1,
Q4_K, Q5_K and Q6_K (K-quant blocks are random bytes with small scales, since
the package cannot make them), exported to a folder. Its tensors must be what
gguf's own dequantise makes of the blocks, element for element, and the log
probabilities that HEARTH computes from the quantised file those that
transformers computes from the folder. adapters: folders with PEFT adapters
merged, over dense and quantised bases, and adapters written again. folders:
shards and dtypes. Exit 77: a package is missing.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import peers

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error", HF_HUB_DISABLE_PROGRESS_BARS="1")
try:
    import gguf
    import numpy as np
    import peft
    import torch
    import transformers
    from safetensors.torch import load_file
    from check_model_files import ARCHITECTURE, build, config, families, stored, write_gguf
except ImportError as error:
    peers.skip(error)

T = gguf.GGMLQuantizationType
KINDS = [T.F32, T.F16, T.BF16, T.Q8_0, T.Q4_0, T.Q4_1, T.Q4_K, T.Q5_K, T.Q6_K]
IDS = [3, 17, 90, 5, 41, 8, 66, 1, 23]
GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "tests/golden"
TOLERANCE = 1e-4


class Blocks:
    """A quantiser for K-quants too, which remembers what its blocks mean."""

    def __init__(self, seed):
        self.rng, self.dense = np.random.default_rng(seed), []

    def __call__(self, data, kind):
        if kind not in (T.Q4_K, T.Q5_K, T.Q6_K):
            blocks = gguf.quants.quantize(data, kind)
        else:
            columns, size = gguf.GGML_QUANT_SIZES[kind]
            blocks = self.rng.integers(0, 256, (data.size // columns, size), dtype=np.uint8)
            # d and dmin are fp16; sub-block scales reach 63 (Q4_K, Q5_K) or 127 (Q6_K).
            for at in [208] if kind == T.Q6_K else [0, 2]:
                d = (self.rng.standard_normal(len(blocks)) * 2e-5).astype(np.float16)
                blocks[:, at:at + 2] = d.view(np.uint8).reshape(-1, 2)
            blocks = blocks.reshape(data.shape[0], -1)
        self.dense.append(gguf.quants.dequantize(blocks, kind))
        return blocks


def hearth(program, *words):
    done = subprocess.run([program, *map(str, words), "--json"], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"FAIL hearth {' '.join(map(str, words))}: {done.stdout}{done.stderr}")
    return json.loads(done.stdout)


def unconverted(c, architecture, name, value):
    """The inverse of check_model_files.converted()."""
    if architecture == "llama" and name.endswith(("q_proj.weight", "k_proj.weight")):
        heads = c.num_attention_heads if "q_proj" in name else c.num_key_value_heads
        shape = value.shape
        return value.reshape(heads, shape[0] // heads // 2, 2, *shape[1:]).swapaxes(1, 2).reshape(shape)
    if architecture == "gpt2" and name.endswith((".c_attn.weight", ".c_proj.weight", ".c_fc.weight")):
        return value.T
    return value


def state_of(folder):
    state = {}
    for file in sorted(folder.glob("*.safetensors")):
        state.update(load_file(file))
    return state


def load(folder):
    return transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager").eval()


@torch.no_grad()
def log_probs(model):
    return torch.log_softmax(model(torch.tensor([IDS])).logits[0, -1].double(), -1).numpy()


def our_log_probs(program, path, *words):
    said = hearth(program, "generate", path, "--ids", ",".join(map(str, IDS)), "--max-tokens", 1, "--logprobs", 1 << 20,
                  "--dtype", "fp32", "--products", "exact", *words)
    top = said["logprobs"][0]["top"]
    return np.array([t["logprob"] for t in sorted(top, key=lambda t: t["id"])])


def check_one(program, work, name, configuration, kind):
    """The largest error of the log probabilities."""
    model = build(configuration)
    path, out = work / f"{name}-{kind.name}.gguf", work / f"{name}-{kind.name}"
    blocks = Blocks([ord(c) for c in name + kind.name])
    write_gguf(path, model, kind, blocks)
    hearth(program, "export", "hf", path, "-o", out, "--dtype", "fp32")
    state, made = state_of(out), iter(blocks.dense)
    c = model.config
    architecture = ARCHITECTURE.get(c.model_type, c.model_type)
    columns = max(gguf.GGML_QUANT_SIZES[kind][0], 32)
    if set(state) != set(stored(model)):
        raise SystemExit(f"FAIL {path.name}: names differ: {sorted(set(state) ^ set(stored(model)))[:6]}")
    quantized = 0
    for key, value in stored(model).items():
        conv1d = architecture == "gpt2" and unconverted(c, architecture, key, value) is not value and value.dim() == 2
        width = value.shape[0] if conv1d else value.shape[-1]
        want, tolerance = value.float().numpy(), 1.2e-7 if architecture.startswith("gemma") else 0.0
        if kind != T.F32 and value.dim() == 2 and width % columns == 0:
            want, tolerance = unconverted(c, architecture, key, next(made)), 0.0
            quantized += 1
        got = state[key].numpy()
        if got.dtype != np.float32 or got.shape != want.shape or np.abs(got - want).max() > tolerance:
            raise SystemExit(f"FAIL {path.name}: {key} differs by {np.abs(got - want).max()}")
    if kind != T.F32 and quantized < 3:
        raise SystemExit(f"FAIL {path.name}: only {quantized} matrices were quantised")
    error = np.abs(our_log_probs(program, path) - log_probs(load(out))).max()
    if error > TOLERANCE:
        raise SystemExit(f"FAIL {path.name}: log probabilities differ by {error}")
    return error


def check_gguf(program, work):
    every = families()
    wide = {"hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2}
    print(f"{'':14}" + "".join(f"{k.name:>9}" for k in KINDS))
    for name in every:
        c = every[name]
        small = {k: v for k, v in c.to_dict().items() if k not in wide}
        if c.model_type == "gpt2":
            c = transformers.GPT2Config(**{**small, "n_embd": 256, "n_layer": 2})
        else:
            small.pop("layer_types", None)
            c = type(c)(**{**small, **wide})
        # Each family in every kind of layout; one of them in all of them.
        kinds = KINDS if name == "llama" else [T.F32, T.Q8_0, T.Q4_K, T.Q6_K]
        errors = {k: check_one(program, work, name, c, k) for k in kinds}
        print(f"{name:14}" + "".join(f"{errors[k]:9.1e}" if k in errors else "        -" for k in KINDS), flush=True)


def merged_by_peft(base, adapter):
    return peft.PeftModel.from_pretrained(load(base), adapter).merge_and_unload().eval()


def compare(where, got, want, tolerance):
    for key, value in want.items():
        error = (got[key].double() - value.double()).abs().max().item()
        if error > tolerance:
            raise SystemExit(f"FAIL {where}: {key} differs by {error}")


def check_adapters(program, work):
    base = GOLDEN / "models/llama3-gqa"
    for adapter in sorted(p for p in (GOLDEN / "adapters").iterdir() if p.is_dir()):
        out, again = work / f"merged-{adapter.name}", work / f"again-{adapter.name}"
        said = hearth(program, "export", "hf", base, "--adapter", adapter, "-o", out, "--dtype", "fp32")
        want = merged_by_peft(base, adapter)
        if said["merged_adapters"] != 6:
            raise SystemExit(f"FAIL {adapter.name}: {said['merged_adapters']} adapters were merged, not 6")
        compare(adapter.name, state_of(out), stored(want), 1e-6)
        hearth(program, "export", "peft", base, "--adapter", adapter, "-o", again)
        compare(f"{adapter.name} again", stored(merged_by_peft(base, again)), stored(want), 1e-6)
    c = config("LlamaConfig", hidden_size=256, intermediate_size=512, num_hidden_layers=2)
    path, dense = work / "base.gguf", work / "base"
    write_gguf(path, build(c), T.Q4_K, Blocks(9))
    hearth(program, "export", "hf", path, "-o", dense, "--dtype", "fp32")
    for name, option in (("lora", {}), ("dora", {"use_dora": True})):
        torch.manual_seed(5)
        adapter, out = work / name, work / f"merged-q4_k-{name}"
        model = peft.get_peft_model(load(dense), peft.LoraConfig(
            r=4, lora_alpha=8, target_modules=["q_proj", "up_proj", "down_proj"], **option))
        with torch.no_grad():
            for key, p in model.named_parameters():
                if "lora_" in key:
                    p.copy_(p * (1 + 0.2 * torch.randn(p.shape)) if "magnitude" in key else torch.randn(p.shape) * 0.05)
        model.save_pretrained(adapter)
        hearth(program, "export", "hf", path, "--adapter", adapter, "-o", out, "--dtype", "fp32")
        want = merged_by_peft(dense, adapter)
        compare(f"Q4_K with {name}", state_of(out), stored(want), 1e-6)
        error = np.abs(our_log_probs(program, path, "--adapter", adapter) - log_probs(want)).max()
        if error > TOLERANCE:
            raise SystemExit(f"FAIL Q4_K with {name}: log probabilities differ by {error}")
    print("adapters merged over dense and Q4_K bases, and written again: peft gives equal weights")


def check_folders(program, work):
    for name in ("llama-bias", "qwen3", "gemma3", "gpt2"):
        model = build(families()[name])
        source = work / f"source-{name}"
        model.save_pretrained(source)
        for word, dtype in (("fp32", torch.float32), ("bf16", torch.bfloat16), ("fp16", torch.float16)):
            out = work / f"out-{name}-{word}"
            hearth(program, "export", "hf", source, "-o", out, "--dtype", word, "--shard-size", "64KB")
            if len(list(out.glob("model-*.safetensors"))) < 2 or not (out / "model.safetensors.index.json").exists():
                raise SystemExit(f"FAIL {out.name}: there must be shards and an index")
            state = state_of(out)
            for key, value in stored(model).items():
                if not torch.equal(state[key], value.to(dtype)):
                    raise SystemExit(f"FAIL {out.name}: {key} differs")
            again = transformers.AutoModelForCausalLM.from_pretrained(out, dtype="auto")
            if again.dtype != dtype:
                raise SystemExit(f"FAIL {out.name}: transformers loads {again.dtype}")
    print("folders in three dtypes and in shards: transformers loads them with equal weights")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    torch.set_num_threads(1)
    transformers.utils.logging.disable_progress_bar()
    checks = {"gguf": check_gguf, "adapters": check_adapters, "folders": check_folders}
    with tempfile.TemporaryDirectory() as work:
        for name, check in checks.items():
            if args.only in name:
                check(os.path.abspath(args.program), pathlib.Path(work))


if __name__ == "__main__":
    main()
