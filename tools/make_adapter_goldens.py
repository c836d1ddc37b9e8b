#!/usr/bin/env python3
"""Makes tests/golden/adapters: PEFT adapters and what they do to a model.

  make_adapter_goldens.py [--out DIR] [--case NAME]... [--check]

The base is tests/golden/models/llama3-gqa. Each case is an adapter folder as
save_pretrained writes it, with A, B and DoRA's magnitudes random, and
expected.safetensors. --check makes them anew elsewhere and compares. Exit 77:
a package is not installed.
"""
import json
import shutil
import sys

import peers

try:
    import peft
    import torch
    from safetensors.torch import load_file
except ImportError as error:
    peers.skip(error)

from make_model_goldens import ROOT, load, make_or_check, rng_of, write_expected

BASE = "llama3-gqa"
TARGETS = ["q_proj", "v_proj", "down_proj"]
CASES = {"lora": {}, "dora": {"use_dora": True}, "rslora": {"use_rslora": True},
         "lora-patterns": {"rank_pattern": {"down_proj": 2}, "alpha_pattern": {"v_proj": 3}}}


def randomise(model, rng):
    for name, p in sorted(model.named_parameters()):
        if "lora_" not in name:
            continue
        x = torch.from_numpy(rng.standard_normal(tuple(p.shape)).astype("float32"))
        # A magnitude starts as the row's norm and must not stay a function of it.
        p.data = p.data * (1 + 0.2 * x) if "magnitude" in name else 0.2 * x


def save(model, folder):
    model.save_pretrained(folder)
    (folder / "README.md").unlink(missing_ok=True)
    path = folder / "adapter_config.json"
    config = json.loads(path.read_text())
    config["base_model_name_or_path"] = f"../../models/{BASE}"
    # PEFT keeps the targets as a set, whose order changes from run to run.
    config["target_modules"] = sorted(config["target_modules"])
    path.write_text(json.dumps(config, indent=2, sort_keys=True))


@torch.no_grad()
def logits_of(model, ids):
    return model(input_ids=ids, use_cache=False).logits


def merged_weights(model):
    """The first block's adapted weights after merging, and the whole's logits."""
    merged = model.merge_and_unload()
    block = merged.model.layers[0]
    linear = {"self_attn.q_proj": block.self_attn.q_proj, "self_attn.v_proj": block.self_attn.v_proj,
              "mlp.down_proj": block.mlp.down_proj}
    return merged, {f"merged.model.layers.0.{n}.weight": m.weight.data for n, m in linear.items()}


def make(case, out):
    folder, base = out / case, ROOT / "tests/golden/models" / BASE
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    config = peft.LoraConfig(task_type="CAUSAL_LM", r=4, lora_alpha=8, lora_dropout=0.0,
                             target_modules=TARGETS, **CASES[case])
    model = peft.get_peft_model(load(base, torch.float32), config)
    randomise(model, rng_of("adapter " + case))
    save(model, folder)

    kept = load_file(base / "expected.safetensors")
    ids = kept["input_ids"].long()
    loaded = peft.PeftModel.from_pretrained(load(base, torch.float32), folder).eval()
    logits = logits_of(loaded, ids)
    merged, weights = merged_weights(loaded)
    assert torch.allclose(logits_of(merged, ids), logits, atol=5e-5)
    changed = (logits - kept["logits"]).abs().max().item()
    assert changed > 0.1, f"{case}: the adapter changes only {changed}"
    write_expected(folder, {"input_ids": kept["input_ids"], "logits": logits, **weights},
                   {"case": case, "made_by": "tools/make_adapter_goldens.py",
                    "base": f"models/{BASE}", "peft": peft.__version__})
    size = sum(f.stat().st_size for f in folder.iterdir())
    print(f"{case:14} {size / 1024:5.1f} KiB  logits std {logits.std():.2f}  changed by {changed:.2f}")
    return size


if __name__ == "__main__":
    sys.exit(make_or_check(CASES, make, ROOT / "tests/golden/adapters", __doc__.splitlines()[0]))
