#!/usr/bin/env python3
"""Writes tests/golden/train_step.json: a step of plain training of a tiny Llama, computed in numpy.

Every document goes through the model alone, gradients are central differences in float64, clipping, the mean over
tokens and AdamW with decay are written out. Nothing is shared with Hearth. Needs numpy; run it again only to change
the case."""
import json
import pathlib

import numpy as np

LETTERS = "abcdefghijklm"  # ids 3, 4, ...; 1 begins a text, 2 ends it
MODEL = {"vocab": 16, "dim": 8, "layers": 2, "heads": 2, "kv_heads": 1, "head_dim": 4, "ffn": 12,
         "theta": 10000.0, "eps": 1e-5}
OPTIM = {"lr": 0.05, "weight_decay": 0.1, "beta1": 0.9, "beta2": 0.95, "eps": 0.02}
STEPS = 1
# Inputs of a document, prompt and completion: rows of 16 hold 14 | 9 7 | 8 6 | 5 4 3.
SHAPES = [(3, 10), (2, 6), (1, 5), (4, 3), (2, 3), (1, 3), (1, 2), (1, 1)]


def documents(random):
    out = []
    for prompt, completion in SHAPES:
        text = "".join(random.choice(list(LETTERS), prompt + completion))
        ids = [1, *(3 + LETTERS.index(c) for c in text), 2]
        # What the prompt says is read and not learnt.
        learnt = [0] * (1 + prompt) + [1] * (completion + 1)
        out.append({"prompt": text[:prompt], "completion": text[prompt:], "ids": ids, "learnt": learnt})
    return out


def start(random):
    m, weights = MODEL, {}
    q, kv = m["heads"] * m["head_dim"], m["kv_heads"] * m["head_dim"]

    def matrix(name, rows, columns):
        weights[name + ".weight"] = np.float32(random.normal(0, 0.35, (rows, columns))).astype(float)

    def norm(name):
        weights[name + ".weight"] = np.float32(1 + 0.1 * random.normal(size=m["dim"])).astype(float)

    matrix("model.embed_tokens", m["vocab"], m["dim"])
    for i in range(m["layers"]):
        block = f"model.layers.{i}."
        norm(block + "input_layernorm")
        matrix(block + "self_attn.q_proj", q, m["dim"])
        matrix(block + "self_attn.k_proj", kv, m["dim"])
        matrix(block + "self_attn.v_proj", kv, m["dim"])
        matrix(block + "self_attn.o_proj", m["dim"], q)
        norm(block + "post_attention_layernorm")
        matrix(block + "mlp.gate_proj", m["ffn"], m["dim"])
        matrix(block + "mlp.up_proj", m["ffn"], m["dim"])
        matrix(block + "mlp.down_proj", m["dim"], m["ffn"])
    norm("model.norm")
    matrix("lm_head", m["vocab"], m["dim"])
    return weights


def rms_norm(x, gain):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + MODEL["eps"]) * gain


def rotated(x):
    """Rotary positions 0, 1, ... of x[length, heads, head_dim]."""
    half = x.shape[-1] // 2
    rates = MODEL["theta"] ** (-np.arange(half) / half)
    angle = np.arange(len(x))[:, None] * rates
    c, s = np.cos(angle)[:, None], np.sin(angle)[:, None]
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * c - b * s, b * c + a * s], -1)


def attention(x, w, block):
    m, n = MODEL, len(x)
    q = rotated((x @ w[block + "q_proj.weight"].T).reshape(n, m["heads"], m["head_dim"]))
    k = rotated((x @ w[block + "k_proj.weight"].T).reshape(n, m["kv_heads"], m["head_dim"]))
    v = (x @ w[block + "v_proj.weight"].T).reshape(n, m["kv_heads"], m["head_dim"])
    share = m["heads"] // m["kv_heads"]
    k, v = np.repeat(k, share, 1), np.repeat(v, share, 1)
    scores = np.einsum("ihd,jhd->hij", q, k) / np.sqrt(m["head_dim"])
    scores[:, np.triu(np.ones((n, n), bool), 1)] = -np.inf
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    scores /= scores.sum(-1, keepdims=True)
    return np.einsum("hij,jhd->ihd", scores, v).reshape(n, -1) @ w[block + "o_proj.weight"].T


def loss_sum(w, document):
    """Of one document alone: the cross-entropy of its learnt tokens."""
    ids = np.array(document["ids"])
    x = w["model.embed_tokens.weight"][ids[:-1]]
    for i in range(MODEL["layers"]):
        block = f"model.layers.{i}."
        x = x + attention(rms_norm(x, w[block + "input_layernorm.weight"]), w, block + "self_attn.")
        h = rms_norm(x, w[block + "post_attention_layernorm.weight"])
        gate = h @ w[block + "mlp.gate_proj.weight"].T
        up = h @ w[block + "mlp.up_proj.weight"].T
        x = x + (gate / (1 + np.exp(-gate)) * up) @ w[block + "mlp.down_proj.weight"].T
    logits = rms_norm(x, w["model.norm.weight"]) @ w["lm_head.weight"].T
    top = logits.max(-1)
    each = np.log(np.exp(logits - top[:, None]).sum(-1)) + top - logits[np.arange(len(x)), ids[1:]]
    return (each * document["learnt"][1:]).sum()


def mean_loss(w, docs):
    return sum(loss_sum(w, d) for d in docs) / sum(sum(d["learnt"]) for d in docs)


def gradient(w, docs):
    out, h = {}, 1e-5
    for name, value in w.items():
        g = np.zeros(value.size)
        flat = value.reshape(-1)
        for i in range(flat.size):
            kept = flat[i]
            flat[i] = kept + h
            up = mean_loss(w, docs)
            flat[i] = kept - h
            g[i] = (up - mean_loss(w, docs)) / (2 * h)
            flat[i] = kept
        out[name] = g.reshape(value.shape)
    return out


def train(w, docs, clip):
    """Losses, norms and where the weights end; a packed epoch is one step."""
    w = {name: value.copy() for name, value in w.items()}
    first = {name: np.zeros_like(value) for name, value in w.items()}
    second = {name: np.zeros_like(value) for name, value in w.items()}
    losses, norms = [], []
    for step in range(1, STEPS + 1):
        losses.append(mean_loss(w, docs))
        g = gradient(w, docs)
        norms.append(np.sqrt(sum((x * x).sum() for x in g.values())))
        down = clip / norms[-1] if 0 < clip < norms[-1] else 1.0
        for name, value in w.items():
            x = g[name] * down
            first[name] = OPTIM["beta1"] * first[name] + (1 - OPTIM["beta1"]) * x
            second[name] = OPTIM["beta2"] * second[name] + (1 - OPTIM["beta2"]) * x * x
            mean = first[name] / (1 - OPTIM["beta1"] ** step)
            square = second[name] / (1 - OPTIM["beta2"] ** step)
            decay = OPTIM["weight_decay"] if value.ndim == 2 else 0.0
            w[name] = value * (1 - OPTIM["lr"] * decay) - OPTIM["lr"] * mean / (np.sqrt(square) + OPTIM["eps"])
    return {"clip": clip, "losses": losses, "norms": norms, "end": w}


def rounded(value):
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, np.ndarray):
        return rounded(value.reshape(-1).tolist())
    if isinstance(value, list):
        return [rounded(v) for v in value]
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    return value


def main():
    random = np.random.default_rng(7)
    docs, weights = documents(random), start(random)
    golden = {
        "from": f"numpy {np.__version__}", "model": MODEL, "optim": OPTIM, "documents": docs, "start": weights,
        "runs": [train(weights, docs, clip) for clip in (0.0, 0.25)],
    }
    for run in golden["runs"]:
        print(f"clip {run['clip']}: losses {run['losses']}, norms {run['norms']}")
    out = pathlib.Path(__file__).parent.parent / "tests/golden/train_step.json"
    out.write_text(json.dumps(rounded(golden)) + "\n")
    print(f"{out}: {out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
