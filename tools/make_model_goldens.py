#!/usr/bin/env python3
"""Makes tests/golden/models: tiny random models and what transformers gets.

  make_model_goldens.py [--out DIR] [--case NAME]... [--check]

Each case is a folder as save_pretrained writes it, weights in bf16, and
expected.safetensors (tests/golden/models/README.md says what is in it). The
same packages give the same bytes. --check makes them anew elsewhere and
compares. Exit 77: a package is not installed.
"""
import argparse
import json
import pathlib
import shutil
import sys
import tempfile
import zlib

import peers

try:
    import numpy as np
    import safetensors.numpy
    import safetensors.torch
    import torch
    import transformers
except ImportError as error:
    peers.skip(error)

from model_golden_cases import CASES, VERSION_4

SEED = 20240611
SEQUENCES, TOKENS = 2, 24
ROOT = pathlib.Path(__file__).resolve().parent.parent


def rng_of(case):
    return np.random.default_rng([SEED, zlib.crc32(case.encode())])


def randomise(model, rng):
    """Norm weights about the value that means no scaling, biases not zero, and
    matrices large enough that attention is far from uniform."""
    centre = 0.0 if model.config.model_type.startswith("gemma") else 1.0
    for name, p in sorted(model.named_parameters()):
        x = rng.standard_normal(tuple(p.shape)).astype(np.float32)
        is_norm = ("norm" in name or ".ln_" in name) and name.endswith("weight")
        x = centre + 0.25 * x if is_norm else 0.22 * x
        p.data.copy_(torch.from_numpy(x))


def make_config(kind, fields):
    return getattr(transformers, kind)(**fields)


def save(config, folder, rng):
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    randomise(model, rng)
    model.save_pretrained(folder)


def load(folder, dtype, config=None):
    return transformers.AutoModelForCausalLM.from_pretrained(
        folder, config=config, dtype=dtype, attn_implementation="eager").eval()


def blocks_of(model):
    core = model.get_decoder() if hasattr(model, "get_decoder") else model.base_model
    return core.layers if hasattr(core, "layers") else core.h


def run(model, ids):
    """Logits, the input of the first block and the output of each, and the
    final norm's output. Hooks, since hidden_states replaces the last block's
    output by the norm's."""
    hidden = []
    blocks = blocks_of(model)
    first = lambda x: x[0] if isinstance(x, tuple) else x
    hooks = [blocks[0].register_forward_pre_hook(
        lambda m, args, kwargs: hidden.append(args[0] if args else kwargs["hidden_states"]),
        with_kwargs=True)]
    hooks += [b.register_forward_hook(lambda m, a, out: hidden.append(first(out))) for b in blocks]
    with torch.no_grad():
        out = model(input_ids=ids, output_hidden_states=True, use_cache=False)
    for hook in hooks:
        hook.remove()
    for ours, theirs in zip(hidden[:-1], out.hidden_states[:-1]):
        assert torch.equal(ours, theirs)
    return out.logits, hidden, out.hidden_states[-1]


def write_expected(folder, tensors, note):
    note = {**note, "seed": SEED, "torch": torch.__version__.split("+")[0],
            "transformers": transformers.__version__}
    # One metadata key: several would be written in no fixed order.
    safetensors.torch.save_file({k: v.contiguous() for k, v in tensors.items()},
                                folder / "expected.safetensors",
                                metadata={"golden": json.dumps(note, sort_keys=True)})


def expect(folder, case, ids):
    logits, hidden, norm = run(load(folder, torch.float32), ids)
    half, _, _ = run(load(folder, torch.bfloat16), ids)
    tensors = {"input_ids": ids.to(torch.int32), "logits": logits, "norm": norm,
               "logits_bf16": half.float()}
    tensors.update({f"hidden.{i}": h for i, h in enumerate(hidden)})
    write_expected(folder, tensors, {"case": case, "made_by": "tools/make_model_goldens.py"})
    return logits, half.float()


def write_version_4(folder, case, ids, logits):
    """The same model under the older spelling, shown to mean the same."""
    drop, add = VERSION_4[case]
    config = json.loads((folder / "config.json").read_text())
    for key in drop:
        del config[key]
    config.update(add, torch_dtype=config.pop("dtype"), transformers_version="4.51.3")
    (folder / "config-v4.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    old = transformers.AutoConfig.from_pretrained(folder / "config-v4.json")
    again, _, _ = run(load(folder, torch.float32, old), ids)
    assert torch.equal(again, logits), f"{case}: config-v4.json means something else"


def difference_without(folder, kind, fields, without, ids, logits):
    if not without:
        return None
    model = load(folder, torch.float32, make_config(kind, {**fields, **without}))
    other, _, _ = run(model, ids)
    return (other - logits).abs().max().item()


def make(case, out):
    kind, fields, without = CASES[case]
    folder = out / case
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    rng = rng_of(case)
    config = make_config(kind, fields)
    save(config, folder, rng)
    ids = torch.from_numpy(rng.integers(0, config.vocab_size, (SEQUENCES, TOKENS)))
    logits, half = expect(folder, case, ids)
    if case in VERSION_4:
        write_version_4(folder, case, ids, logits)
    changed = difference_without(folder, kind, fields, without, ids, logits)
    assert changed is None or changed > 1e-3, f"{case}: the option changes only {changed}"
    size = sum(f.stat().st_size for f in folder.iterdir())
    print(f"{case:18} {size / 1024:6.1f} KiB  logits std {logits.std():.2f} max {logits.abs().max():.2f}"
          f"  bf16 error max {(half - logits).abs().max():.3f}"
          f"  without the option {'-' if changed is None else format(changed, '.4f')}")
    return size


def compare(case, made, kept):
    """None, or what differs. Weights and configs to the byte; figures within
    what another CPU's summation order may change."""
    for name in sorted(f.name for f in (made / case).iterdir()):
        if not (kept / case / name).exists():
            return f"{case}/{name} is missing"
        if name != "expected.safetensors":
            if (made / case / name).read_bytes() != (kept / case / name).read_bytes():
                return f"{case}/{name} differs"
            continue
        a, b = (safetensors.numpy.load_file(d / case / name) for d in (made, kept))
        for key in a:
            limit = 0.1 if key == "logits_bf16" else 2e-5
            error = np.abs(a[key].astype(np.float64) - b[key]).max()
            if not error <= limit:
                return f"{case}/{name}: {key} differs by {error}"
    return None


def make_or_check(cases, make_one, out, description):
    """The command line of a maker of golden folders."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--out", type=pathlib.Path, default=out)
    parser.add_argument("--case", action="append", choices=sorted(cases))
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    chosen = args.case or list(cases)
    if not args.check:
        total = sum(make_one(case, args.out) for case in chosen)
        print(f"{len(chosen)} cases, {total / 1024:.0f} KiB")
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        made = pathlib.Path(scratch)
        for case in chosen:
            make_one(case, made)
        wrong = [line for line in (compare(c, made, args.out) for c in chosen) if line]
    print("\n".join(wrong) or f"{len(chosen)} cases agree")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(make_or_check(CASES, make, ROOT / "tests/golden/models", __doc__.splitlines()[0]))
