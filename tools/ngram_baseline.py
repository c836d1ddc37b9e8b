#!/usr/bin/env python3
"""Perplexity of an interpolated 5-gram model on the held-out split of a token cache, as the mark a trained model has to
beat. Modified Kneser-Ney smoothing (Chen and Goodman 1998): discounts from counts of counts, continuation counts below
the highest order, the uniform distribution at the bottom. Needs numpy; without it the exit code is 77.

    hearth train recipes/quickstart.yaml data.cache=/tmp/cache
    tools/ngram_baseline.py /tmp/cache --run runs/quickstart
"""
import argparse
import json
import math
import pathlib
import struct
import sys

try:
    import numpy as np
except ImportError:
    print("SKIP: numpy is not installed")
    sys.exit(77)


def read_split(cache, split):
    """All documents of a split as one stream of ids."""
    manifest = json.loads((cache / "manifest.json").read_text())
    parts = []
    for shard in manifest["shards"]:
        if shard["split"] != split:
            continue
        raw = (cache / shard["file"]).read_bytes()
        width = struct.unpack_from("<I", raw, 12)[0]
        kind = {2: "<u2", 4: "<u4"}[width]
        parts.append(np.frombuffer(raw, kind, shard["tokens"], 64).astype(np.uint64))
    if not parts:
        sys.exit(f"{cache} has no {split} split")
    return np.concatenate(parts), manifest["vocabulary"]


def codes(ids, order, bits):
    """The n-grams of a stream, the oldest token in the highest bits."""
    n = len(ids) - order + 1
    out = np.zeros(n, np.uint64)
    for i in range(order):
        out = (out << np.uint64(bits)) | ids[i:i + n]
    return out


class Order:
    """The counts of one order, with discounts and what each context leaves to the order below."""

    def __init__(self, keys, counts, bits):
        self.keys, self.counts = keys, counts
        ones, twos, threes, fours = (max(1, int((counts == c).sum())) for c in (1, 2, 3, 4))
        y = ones / (ones + 2 * twos)
        self.discounts = np.array([0, 1 - 2 * y * twos / ones, 2 - 3 * y * threes / twos, 3 - 4 * y * fours / threes])
        self.discounts = np.clip(self.discounts, 0, [0, 1, 2, 3])
        discount = self.discounts[np.minimum(counts, 3)]
        self.kept = counts - discount
        self.contexts, first = np.unique(keys >> np.uint64(bits), return_index=True)
        self.totals = np.add.reduceat(counts, first)
        self.left = np.add.reduceat(discount, first)

    def mix(self, grams, below, bits):
        """p(last token | the others) of each n-gram, from that of the order below."""
        at = np.minimum(np.searchsorted(self.keys, grams), len(self.keys) - 1)
        kept = np.where(self.keys[at] == grams, self.kept[at], 0.0)
        context = grams >> np.uint64(bits)
        at = np.minimum(np.searchsorted(self.contexts, context), len(self.contexts) - 1)
        known = self.contexts[at] == context
        return np.where(known, (kept + self.left[at] * below) / self.totals[at], below)


class KneserNey:
    def __init__(self, ids, vocabulary, order):
        self.order, self.vocabulary = order, vocabulary
        self.bits = max(1, (vocabulary - 1).bit_length())
        if self.bits * order > 64:
            sys.exit(f"{order}-grams of a vocabulary of {vocabulary} do not fit 64 bits")
        self.orders = []
        keys, counts = np.unique(codes(ids, order, self.bits), return_counts=True)
        for n in range(order, 0, -1):
            self.orders.insert(0, Order(keys, counts.astype(np.float64).astype(np.int64), self.bits))
            if n > 1:
                # How many different tokens come before: each longer n-gram counts once.
                mask = np.uint64((1 << (self.bits * (n - 1))) - 1)
                keys, counts = np.unique(keys & mask, return_counts=True)

    def log_probs(self, ids):
        """Of every token but the first order - 1."""
        n = len(ids) - self.order + 1
        p = np.full(n, 1.0 / self.vocabulary)
        whole = codes(ids, self.order, self.bits)
        for length, order in enumerate(self.orders, 1):
            bits = self.bits * length
            grams = whole if bits >= 64 else whole & np.uint64((1 << bits) - 1)
            p = order.mix(grams, p, self.bits)
        return np.log(p)


def check_sums(model):
    """Probabilities of all tokens after a context add up to one."""
    rng = np.random.default_rng(0)
    for _ in range(3):
        context = rng.integers(0, model.vocabulary, model.order - 1)
        rows = np.concatenate([np.append(context, w) for w in range(model.vocabulary)]).astype(np.uint64)
        at = np.arange(model.vocabulary) * model.order
        total = np.exp(model.log_probs(rows)[at]).sum()
        assert abs(total - 1) < 1e-6, total


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cache", type=pathlib.Path, help="folder of a token cache with a valid split")
    parser.add_argument("--order", type=int, default=5)
    parser.add_argument("--run", type=pathlib.Path, action="append", default=[], help="run directory to compare with")
    args = parser.parse_args()
    train, vocabulary = read_split(args.cache, "train")
    valid, _ = read_split(args.cache, "valid")
    best = math.inf
    for order in range(2, args.order + 1):
        model = KneserNey(train, vocabulary, order)
        check_sums(model)
        perplexity = math.exp(-model.log_probs(valid).mean())
        best = min(best, perplexity)
        print(f"{order}-gram: perplexity {perplexity:.3f} over {len(valid)} tokens, trained on {len(train)}")
    for run in args.run:
        own = math.exp(json.loads((run / "best.json").read_text())["valid_loss"])
        print(f"{run}: perplexity {own:.3f}, {100 * (1 - own / perplexity):.1f} % below the {args.order}-gram, "
              f"{100 * (1 - own / best):.1f} % below the best")


if __name__ == "__main__":
    main()
