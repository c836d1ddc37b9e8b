#!/usr/bin/env python3
"""Trains the same model on the same text in Hearth and in PyTorch, and compares
the losses at the same number of tokens.

  compare_losses.py TEXT [--seeds 1,2,3] [--steps N] [--json FILE]

TEXT is plain text; <|endoftext|> parts documents, every twentieth is held out.
Both sides have one tokenizer (trained on the text by Hearth), architecture,
initial distribution, schedule and optimiser, and for a seed the same batches in
the same order (hearth data inspect); the initial weights are each side's own. Printed are both validation curves, the
mean and range over the seeds, and how far apart the ends are against what seeds
alone do. Exit 77: PyTorch is absent; exit 1: they are not level.
"""
import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
WIDTH, LAYERS, HEADS, FFN, VOCABULARY = 192, 4, 6, 512, 2048
LENGTH, ROWS = 256, 16
RATE, LEAST_RATE, WARM_UP, DECAY, BETAS = 1e-3, 0.1, 20, 0.1, (0.9, 0.95)
END = "<|end|>"

RECIPE = """
model:  {{arch: llama, dim: {width}, layers: {layers}, heads: {heads}, ffn: {ffn}, tie: true}}
data:   {{train: {folder}/train.jsonl, valid: {folder}/valid.jsonl, tokenizer: {folder}/tokenizer.json, length: {length},
         arrange: concat}}
train:  {{objective: lm, tokens_per_step: {tokens}, steps: {steps}, precision: bf16, eval_every: {every}, save_every: {steps}}}
optim:  {{name: adamw, lr: {rate}, schedule: cosine, warmup: {warm_up}, min_lr: {least}, weight_decay: {decay},
         betas: [{beta_1}, {beta_2}], clip: 1.0}}
run:    {{dir: {folder}/run-{seed}, seed: {seed}}}
"""


def run(command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{command[0]} failed:\n{done.stderr}{done.stdout}")
    return done.stdout


def prepare(args, folder):
    text = args.text.read_text(encoding="utf-8")
    documents = [d.strip() for d in text.split("<|endoftext|>") if d.strip()]
    for name, held_out in (("train", False), ("valid", True)):
        lines = (json.dumps({"text": d}) for i, d in enumerate(documents) if (i % 20 == 0) == held_out)
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    run([args.hearth, "tokenizer", "train", folder / "train.jsonl", "--vocab", VOCABULARY, "--special", END,
         "-o", folder / "tokenizer.json"])


def hearth_curve(args, folder, seed):
    """[(step, validation loss)]"""
    recipe = folder / f"recipe-{seed}.yaml"
    recipe.write_text(RECIPE.format(
        width=WIDTH, layers=LAYERS, heads=HEADS, ffn=FFN, folder=folder, length=LENGTH, tokens=LENGTH * ROWS,
        steps=args.steps, every=args.every, rate=RATE, warm_up=WARM_UP, least=LEAST_RATE, decay=DECAY,
        beta_1=BETAS[0], beta_2=BETAS[1], seed=seed))
    shown = run([args.hearth, "data", "inspect", recipe, "--json", "--seed", seed, "--documents", 0,
                 "--batches", args.steps, "--tokens-per-batch", LENGTH * ROWS])
    batches = json.loads(shown)["batches"]
    if len(batches) < args.steps:
        raise SystemExit(f"--steps must be at most {len(batches)}, the text's length")
    (folder / f"batches-{seed}.json").write_text(json.dumps([[b["ids"], b["targets"]] for b in batches]))
    run([args.hearth, "train", recipe, "--quiet"])
    lines = (folder / f"run-{seed}/metrics.jsonl").read_text().splitlines()
    metrics = [json.loads(line) for line in lines]
    return [(m["step"], m["valid_loss"]) for m in metrics if m.get("valid_loss") is not None]


def torch_curve(args, folder, seed):
    import torch
    from tokenizers import Tokenizer
    sys.path.insert(0, str(ROOT / "tools"))
    import pytorch_peer
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    end = tokenizer.token_to_id(END)

    def held_out():
        """Rows of LENGTH + 1 ids, each beginning where the last one ended."""
        ids = []
        for line in (folder / "valid.jsonl").read_text(encoding="utf-8").splitlines():
            ids += tokenizer.encode(json.loads(line)["text"]).ids + [end]
        count = (len(ids) - 1) // LENGTH
        return torch.stack([torch.tensor(ids[i * LENGTH:(i + 1) * LENGTH + 1]) for i in range(count)])

    torch.manual_seed(seed)
    valid = held_out()
    batches = torch.tensor(json.loads((folder / f"batches-{seed}.json").read_text()))
    model = pytorch_peer.Decoder((WIDTH, LAYERS, HEADS, HEADS, FFN, VOCABULARY), LENGTH)
    for name, p in model.named_parameters():
        if p.dim() == 2:
            last = name.endswith(("out.weight", "down.weight"))
            torch.nn.init.normal_(p, std=0.02 / math.sqrt(2 * LAYERS if last else 1))
    groups = [{"params": [p for p in model.parameters() if p.dim() == 2], "weight_decay": DECAY},
              {"params": [p for p in model.parameters() if p.dim() == 1], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=RATE, betas=BETAS, fused=True)

    def loss_of(ids, targets):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return model(ids, targets)

    def rate_at(step):
        if step < WARM_UP:
            return RATE * (step + 1) / WARM_UP
        done = (step - WARM_UP) / max(1, args.steps - WARM_UP)
        return RATE * (LEAST_RATE + (1 - LEAST_RATE) * 0.5 * (1 + math.cos(math.pi * done)))

    curve = []
    for step in range(args.steps):
        for group in optimizer.param_groups:
            group["lr"] = rate_at(step)
        loss_of(*batches[step]).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if (step + 1) % args.every == 0 or step + 1 == args.steps:
            with torch.no_grad():
                losses = [loss_of(part[:, :-1], part[:, 1:]).item() * len(part) for part in valid.split(ROWS)]
            curve.append((step + 1, sum(losses) / len(valid)))
    return curve


def report(curves, tokens):
    steps = sorted({s for c in curves["hearth"] for s, _ in c} & {s for c in curves["pytorch"] for s, _ in c})
    at = {side: {s: [dict(c)[s] for c in runs] for s in steps} for side, runs in curves.items()}
    print(f"{'tokens':>10}  " + "  ".join(f"{side:^30}" for side in at))
    for s in steps:
        cells = (f"{statistics.mean(v[s]):8.4f} ({min(v[s]):.4f} to {max(v[s]):.4f})" for v in at.values())
        print(f"{s * tokens:>10}  " + "  ".join(f"{c:^30}" for c in cells))
    ends = {side: v[steps[-1]] for side, v in at.items()}
    apart = statistics.mean(ends["hearth"]) - statistics.mean(ends["pytorch"])
    noise = math.sqrt(sum(statistics.variance(e) / len(e) for e in ends.values())) if len(ends["hearth"]) > 1 else 0
    level = apart <= max(2 * noise, 0.01)
    print(f"hearth - pytorch: {apart:+.4f} nats, two standard errors of the seeds {2 * noise:.4f}: "
          f"{'level' if level else 'not level'}")
    return level


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", type=pathlib.Path)
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--every", type=int, default=20, help="steps between validations")
    parser.add_argument("--hearth", default=ROOT / "build/release/hearth")
    parser.add_argument("--json", type=pathlib.Path, help="write the curves here too")
    args = parser.parse_args()
    try:
        import torch  # noqa: F401
        import tokenizers  # noqa: F401
    except ImportError as missing:
        print(missing)
        return 77
    curves = {"hearth": [], "pytorch": []}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        prepare(args, folder)
        for seed in map(int, args.seeds.split(",")):
            for side, train in (("hearth", hearth_curve), ("pytorch", torch_curve)):
                print(f"{side}, seed {seed} ...", file=sys.stderr, flush=True)
                curves[side].append(train(args, folder, seed))
    if args.json:
        args.json.write_text(json.dumps(curves, indent=1) + "\n")
    return 0 if report(curves, LENGTH * ROWS) else 1


if __name__ == "__main__":
    sys.exit(main())
