#!/usr/bin/env python3
"""Holds our GGUF blocks against PyPI's gguf package.

  check_gguf_quants.py PROGRAM [--golden FILE]

PROGRAM is hearth_quant_parity. Dequantising must give the oracle's fp32 bits
for any block; quantising must give its bytes for Q8_0, Q4_0 and Q4_1. The
package does not quantise K-quants: for those our blocks, read by the oracle,
must come closer to the weights than rounding between the extremes does.
--golden writes the small file that the C++ unit test reads. Exit 77: the
package is not installed.
"""
import argparse
import json
import subprocess
import sys

import peers

try:
    import numpy as np
    from gguf import GGMLQuantizationType as T
    from gguf import quants
    from gguf.constants import GGML_QUANT_SIZES
except ImportError as error:
    peers.skip(error)

SEED = 20240607
FORMATS = {"q8_0": T.Q8_0, "q4_0": T.Q4_0, "q4_1": T.Q4_1,
           "q4_k": T.Q4_K, "q5_k": T.Q5_K, "q6_k": T.Q6_K}


def ours(program, action, name, data, rows, cols, isa):
    command = [program, action, name, str(rows), str(cols)] + ([isa] if isa else [])
    done = subprocess.run(command, input=data.tobytes(), stdout=subprocess.PIPE, check=True)
    return done.stdout


def weights(rng, rows, cols):
    w = rng.standard_normal((rows, cols)).astype(np.float32)
    w *= np.exp(rng.uniform(-6, 3, (rows, 1))).astype(np.float32)
    w[0] = 0.0                      # a row of zeros
    w[1, ::7] *= 20                 # outliers
    w[2] = np.abs(w[2])             # one sign
    w[3] = 0.25                     # a constant
    return w


def random_blocks(rng, qtype, rows, cols):
    """Bytes no quantiser would write, with finite fp16 scales."""
    columns, size = GGML_QUANT_SIZES[qtype]
    blocks = rng.integers(0, 256, (rows * cols // columns, size), dtype=np.uint8)
    at = {T.Q6_K: [208]}.get(qtype, [0] if qtype in (T.Q8_0, T.Q4_0) else [0, 2])
    for offset in at:
        d = rng.standard_normal(len(blocks)).astype(np.float16)
        d[: len(d) // 4] *= np.float16(2.0 ** -16)      # subnormal ones too
        blocks[:, offset:offset + 2] = d.view(np.uint8).reshape(-1, 2)
    return blocks.reshape(rows, -1)


def naive_error(w, levels, sub):
    """Squared error of rounding between the extremes of each sub-block, or,
    for an even number of levels, to a symmetric range about zero."""
    x = w.reshape(-1, sub).astype(np.float64)
    if levels % 2:
        lo, hi = np.minimum(x.min(1, keepdims=True), 0), x.max(1, keepdims=True)
    else:
        hi = np.abs(x).max(1, keepdims=True)
        lo = -hi
    step = np.where(hi > lo, (hi - lo) / levels, 1)
    return (((np.round((x - lo) / step) * step + lo) - x) ** 2).sum()


def check(program, name, qtype, isa, rng):
    rows, cols = 8, 1024
    blocks = random_blocks(rng, qtype, rows, cols)
    want = quants.dequantize(blocks, qtype)
    got = np.frombuffer(ours(program, "dequantize", name, blocks, rows, cols, isa), np.float32)
    if not np.array_equal(got.view(np.uint32), want.ravel().view(np.uint32)):
        return f"{name}: dequantize differs in {(got != want.ravel()).sum()} places"
    w = weights(rng, rows, cols)
    mine = np.frombuffer(ours(program, "quantize", name, w, rows, cols, isa), np.uint8)
    if name in ("q8_0", "q4_0", "q4_1"):
        theirs = quants.quantize(w, qtype).ravel()
        if not np.array_equal(mine, theirs):
            return f"{name}: quantize differs in {(mine != theirs).sum()} bytes"
        return None
    back = quants.dequantize(mine.reshape(rows, -1), qtype)
    error = ((back.astype(np.float64) - w) ** 2).sum()
    levels, sub = {"q4_k": (15, 32), "q5_k": (31, 32), "q6_k": (62, 16)}[name]
    limit = naive_error(w, levels, sub)
    print(f"{name}: squared error {error:.5g}, plain rounding {limit:.5g}")
    return None if error <= limit else f"{name}: quantisation error {error} > {limit}"


def golden(path):
    rng = np.random.default_rng(SEED)
    out = {"seed": SEED, "made_by": "tools/check_gguf_quants.py --golden"}
    for name, qtype in FORMATS.items():
        cols = 256
        blocks = random_blocks(rng, qtype, 1, cols)
        entry = {"blocks": blocks.tobytes().hex(),
                 "weights": quants.dequantize(blocks, qtype).astype("<f4").tobytes().hex()}
        if name in ("q8_0", "q4_0", "q4_1"):
            w = rng.standard_normal((1, cols)).astype(np.float32)
            entry["quantize_from"] = w.astype("<f4").tobytes().hex()
            entry["quantize_to"] = quants.quantize(w, qtype).tobytes().hex()
        out[name] = entry
    with open(path, "w") as f:
        json.dump(out, f, indent=1)
        f.write("\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", nargs="?")
    parser.add_argument("--golden")
    parser.add_argument("--isa", default="")
    args = parser.parse_args()
    if args.golden:
        golden(args.golden)
    if not args.program:
        return 0
    rng = np.random.default_rng(SEED)
    failures = [f for name, qtype in FORMATS.items()
                if (f := check(args.program, name, qtype, args.isa, rng))]
    print("\n".join(failures) or f"{len(FORMATS)} formats agree")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
