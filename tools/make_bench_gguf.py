#!/usr/bin/env python3
"""Models for `hearth bench infer`, written to GGUF in BF16, Q8_0 and Q4_0 by PyPI's gguf (development only).

usage: make_bench_gguf.py OUT_FOLDER [SMOLLM2.gguf]

qwen05-*.gguf have random weights in the shape of Qwen2.5-0.5B. With a GGUF of SmolLM2-135M, smollm2-*.gguf are the same
model widened and rounded again. Every matrix of a file has the file's type, the embedding too, so that both sides read the
same bytes; norms and biases stay float32. A file that is there is left alone.
"""
import os
import sys

import gguf
import numpy as np

TYPES = {"bf16": gguf.GGMLQuantizationType.BF16, "q8_0": gguf.GGMLQuantizationType.Q8_0, "q4_0": gguf.GGMLQuantizationType.Q4_0}


def put(writer, name, values, kind):
    if values.ndim == 1:
        writer.add_tensor(name, values.astype(np.float32))
        return
    data = gguf.quants.quantize(np.ascontiguousarray(values, dtype=np.float32), kind)
    writer.add_tensor(name, data, raw_dtype=kind)


def finish(writer, target):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    os.replace(target + ".part", target)
    print(target)


def qwen(target, kind):
    dim, layers, heads, kv, ffn, vocab = 896, 24, 14, 2, 4864, 151936
    w = gguf.GGUFWriter(target + ".part", "qwen2")
    w.add_block_count(layers), w.add_context_length(32768), w.add_embedding_length(dim), w.add_feed_forward_length(ffn)
    w.add_head_count(heads), w.add_head_count_kv(kv), w.add_layer_norm_rms_eps(1e-6), w.add_rope_freq_base(1e6)
    w.add_vocab_size(vocab), w.add_tokenizer_model("none")
    rng = np.random.default_rng(0)
    matrix = lambda name, *shape: put(w, name, rng.standard_normal(shape, dtype=np.float32) * 0.02, kind)
    vector = lambda name, n, value: put(w, name, np.full(n, value, dtype=np.float32), kind)
    matrix("token_embd.weight", vocab, dim)
    vector("output_norm.weight", dim, 1)
    for i in range(layers):
        b = f"blk.{i}."
        vector(b + "attn_norm.weight", dim, 1), vector(b + "ffn_norm.weight", dim, 1)
        for part, n in (("q", dim), ("k", kv * 64), ("v", kv * 64)):
            matrix(b + f"attn_{part}.weight", n, dim)
            vector(b + f"attn_{part}.bias", n, 0)
        matrix(b + "attn_output.weight", dim, dim)
        matrix(b + "ffn_gate.weight", ffn, dim), matrix(b + "ffn_up.weight", ffn, dim), matrix(b + "ffn_down.weight", dim, ffn)
    finish(w, target)


def convert(source, target, kind):
    r = gguf.GGUFReader(source)
    arch = r.fields["general.architecture"].contents()
    w = gguf.GGUFWriter(target + ".part", arch)
    for name, field in r.fields.items():
        if name.startswith("GGUF.") or name in ("general.architecture", "general.file_type", "general.quantization_version"):
            continue
        kind_of = field.types[0]
        sub = field.types[-1] if kind_of == gguf.GGUFValueType.ARRAY else None
        w.add_key_value(name, field.contents(), kind_of, sub_type=sub)
    for t in r.tensors:
        values = gguf.quants.dequantize(t.data, t.tensor_type)
        put(w, t.name, values.reshape([int(n) for n in reversed(t.shape)]), kind)
    finish(w, target)


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    for name, kind in TYPES.items():
        target = os.path.join(folder, f"qwen05-{name}.gguf")
        if not os.path.exists(target):
            qwen(target, kind)
        target = os.path.join(folder, f"smollm2-{name}.gguf")
        if len(sys.argv) == 3 and not os.path.exists(target):
            convert(sys.argv[2], target, kind)


main()
