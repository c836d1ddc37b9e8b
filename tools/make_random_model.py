#!/usr/bin/env python3
"""Writes a model of random bf16 weights in the shape of a known one, in shards
as the hub has them: for loads and speeds that need a size, not a meaning.
Needs nothing but Python.

  tools/make_random_model.py llama-2-7b OUT [--shards 4] [--seed 1]
"""
import argparse
import json
import os
import random
import struct
import sys

SHAPES = {
    "llama-2-7b": dict(vocab_size=32000, hidden_size=4096, intermediate_size=11008,
                       num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=32,
                       tie_word_embeddings=False, max_position_embeddings=4096),
    "llama-3.2-1b": dict(vocab_size=128256, hidden_size=2048, intermediate_size=8192,
                         num_hidden_layers=16, num_attention_heads=32, num_key_value_heads=8,
                         tie_word_embeddings=True, max_position_embeddings=8192),
    "smollm2-360m": dict(vocab_size=49152, hidden_size=960, intermediate_size=2560,
                         num_hidden_layers=32, num_attention_heads=15, num_key_value_heads=5,
                         tie_word_embeddings=True, max_position_embeddings=8192),
    "tiny": dict(vocab_size=512, hidden_size=256, intermediate_size=512,
                 num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2,
                 tie_word_embeddings=True, max_position_embeddings=512),
}
POOL = 1 << 25  # elements drawn; longer tensors take them again, shifted


def tensors(c):
    dim, ffn, vocab = c["hidden_size"], c["intermediate_size"], c["vocab_size"]
    kv = dim // c["num_attention_heads"] * c["num_key_value_heads"]
    yield "model.embed_tokens.weight", [vocab, dim]
    for i in range(c["num_hidden_layers"]):
        at = f"model.layers.{i}."
        yield at + "input_layernorm.weight", [dim]
        yield at + "self_attn.q_proj.weight", [dim, dim]
        yield at + "self_attn.k_proj.weight", [kv, dim]
        yield at + "self_attn.v_proj.weight", [kv, dim]
        yield at + "self_attn.o_proj.weight", [dim, dim]
        yield at + "post_attention_layernorm.weight", [dim]
        yield at + "mlp.gate_proj.weight", [ffn, dim]
        yield at + "mlp.up_proj.weight", [ffn, dim]
        yield at + "mlp.down_proj.weight", [dim, ffn]
    yield "model.norm.weight", [dim]
    if not c["tie_word_embeddings"]:
        yield "lm_head.weight", [vocab, dim]


def elements(shape):
    n = 1
    for d in shape:
        n *= d
    return n


def draw(seed):
    """bf16 between 1/128 and 1/32 in size, either sign."""
    source = random.Random(seed)
    low = source.randbytes(POOL)
    high = source.randbytes(POOL).translate(bytes(0x3C if b < 128 else 0xBC for b in range(256)))
    pool = bytearray(2 * POOL)
    pool[0::2] = low
    pool[1::2] = high
    return memoryview(pool)


def write(out, name, entries, pool, chooser):
    header, at = {}, 0
    for tensor, shape in entries:
        size = 2 * elements(shape)
        header[tensor] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(out, name), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for tensor, shape in entries:
            left = 2 * elements(shape)
            if len(shape) == 1:
                f.write(b"\x80\x3f" * elements(shape))  # norms are ones
                continue
            while left:
                begin = 2 * chooser.randrange(POOL)
                part = pool[begin:begin + left]
                f.write(part)
                left -= len(part)
    return at


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("out")
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    c = dict(architectures=["LlamaForCausalLM"], model_type="llama", hidden_act="silu", rms_norm_eps=1e-5,
             rope_theta=10000.0, torch_dtype="bfloat16", bos_token_id=1, eos_token_id=2, **SHAPES[args.shape])
    os.makedirs(args.out, exist_ok=True)
    everything = list(tensors(c))
    total = sum(2 * elements(s) for _, s in everything)
    shards, held = [[]], 0
    for tensor, shape in everything:
        if held >= total / args.shards and len(shards) < args.shards:
            shards.append([])
            held = 0
        shards[-1].append((tensor, shape))
        held += 2 * elements(shape)
    pool, chooser, listed = draw(args.seed), random.Random(args.seed), {}
    for i, entries in enumerate(shards, 1):
        name = f"model-{i:05}-of-{len(shards):05}.safetensors"
        size = write(args.out, name, entries, pool, chooser)
        listed.update({tensor: name for tensor, _ in entries})
        print(f"{name}: {size / 1e9:.2f} GB", file=sys.stderr)
    with open(os.path.join(args.out, "model.safetensors.index.json"), "w") as f:
        json.dump({"metadata": {"total_size": total}, "weight_map": listed}, f, indent=1)
    with open(os.path.join(args.out, "config.json"), "w") as f:
        json.dump(c, f, indent=1)


if __name__ == "__main__":
    main()
