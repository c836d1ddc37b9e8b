#!/usr/bin/env python3
"""Writes tests/golden/optimizers.json: steps that torch's optimisers made and
rates that transformers' schedules gave. Needs torch (2.9 or later) and
transformers; run it again only to add cases."""
import json
import pathlib

import torch
import transformers

STEPS = 12
LR = 0.02


def run(make, shape, decay):
    generator = torch.Generator().manual_seed(len(shape) * 100 + shape[0])
    w = torch.nn.Parameter(torch.randn(shape, generator=generator))
    start = w.detach().clone()
    optimizer = make([w], decay)
    gradients = []
    for _ in range(STEPS):
        w.grad = torch.randn(shape, generator=generator)
        gradients.append(w.grad.flatten().tolist())
        optimizer.step()
    return {
        "shape": list(shape), "lr": LR, "decay": decay,
        "start": start.flatten().tolist(), "gradients": gradients,
        "end": w.detach().flatten().tolist(),
    }


def adamw(params, decay):
    return torch.optim.AdamW(params, lr=LR, betas=(0.9, 0.95), weight_decay=decay)


def muon(params, decay):
    return torch.optim.Muon(
        params, lr=LR, weight_decay=decay, momentum=0.95, nesterov=True,
        adjust_lr_fn="match_rms_adamw")


def schedule(name, make, total, warmup, **recipe):
    w = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([w], lr=LR)
    scheduler = make(optimizer)
    rates = []
    for _ in range(total + 1):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return {"schedule": name, "lr": LR, "warmup": warmup, "total": total,
            "rates": rates, **recipe}


def schedules():
    t = transformers
    yield schedule("constant", lambda o: t.get_constant_schedule_with_warmup(o, 5), 20, 5)
    yield schedule("linear", lambda o: t.get_linear_schedule_with_warmup(o, 4, 30), 30, 4)
    yield schedule("cosine", lambda o: t.get_cosine_schedule_with_warmup(o, 6, 40), 40, 6)
    yield schedule(
        "cosine",
        lambda o: t.get_cosine_with_min_lr_schedule_with_warmup(o, 3, 25, min_lr_rate=0.1),
        25, 3, min_lr=0.1)
    # Its warm-up starts at the least rate, ours at nothing: one or the other.
    for warmup, least in ((5, 0), (0, 0.05)):
        yield schedule(
            "wsd",
            lambda o, w=warmup, m=least: t.get_wsd_schedule(
                o, num_warmup_steps=w, num_decay_steps=10, num_stable_steps=30 - w,
                decay_type="linear", min_lr_ratio=m),
            40, warmup, decay_fraction=0.25, min_lr=least)


def rounded(value):
    """Nine digits tell every float32 apart."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, list):
        return [rounded(v) for v in value]
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    return value


def main():
    golden = {
        "from": f"torch {torch.__version__.split('+')[0]}, "
                f"transformers {transformers.__version__}",
        "adamw": [run(adamw, (6, 7), 0.1), run(adamw, (13,), 0.0)],
        "muon": [run(muon, (8, 12), 0.1), run(muon, (12, 6), 0.0)],
        "schedules": list(schedules()),
    }
    out = pathlib.Path(__file__).parent.parent / "tests/golden/optimizers.json"
    out.write_text(json.dumps(rounded(golden)) + "\n")
    print(f"{out}: {out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
