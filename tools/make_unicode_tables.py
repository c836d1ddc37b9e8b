#!/usr/bin/env python3
"""Writes src/hearth/text/tokenizer/unicode_data.cpp.

Hugging Face `tokenizers` draws on several Unicode versions at once (Oniguruma
16.0 for regular expressions, an old fork for normalisation, Rust's own tables
for digits and lower case), so each property is probed from the package itself
and a tokenizer that follows these tables splits text as it does. General
categories come from unicodedata2 16.0.0 and are checked against the package.

  pip install tokenizers unicodedata2==16.0.0
  tools/make_unicode_tables.py [OUT]
"""
import pathlib
import sys

import unicodedata2
from tokenizers import Regex, normalizers, pre_tokenizers

CATEGORIES = ("Cn Cc Cf Co Cs Ll Lm Lo Lt Lu Mc Me Mn Nd Nl No "
              "Pc Pd Pe Pf Pi Po Ps Sc Sk Sm So Zl Zp Zs").split()
POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
NFC, NFD = normalizers.NFC().normalize_str, normalizers.NFD().normalize_str
NFKC, NFKD = normalizers.NFKC().normalize_str, normalizers.NFKD().normalize_str
LOWER = normalizers.Lowercase().normalize_str


def regex_set(pattern):
    """Code points that the package's regular expressions match."""
    split = pre_tokenizers.Split(Regex(pattern), "removed", invert=True)
    found = set()
    for piece, _ in split.pre_tokenize_str("".join(map(chr, POINTS))):
        found.update(map(ord, piece))
    return found


def probe(pre_tokenizer, pieces):
    return {c for c in POINTS
            if len(pre_tokenizer.pre_tokenize_str("a" + chr(c))) == pieces}


def combining_class(c):
    """The class the package uses: unassigned in its version means 0."""
    ccc = unicodedata2.combining(chr(c))
    if not ccc:
        return 0
    # A mark of class 1 after one of a higher class moves before it.
    low, high = chr(0x334), "\u0345"
    moved = NFD("a" + chr(c) + low) if ccc > 1 else NFD("a" + high + chr(c))
    if chr(c) not in moved:  # it decomposes, so its class is never asked for
        return ccc
    return ccc if moved.index(chr(c)) == (2 if ccc > 1 else 1) else 0


def hangul(c):
    return 0xAC00 <= c <= 0xD7A3


def build():
    assert unicodedata2.unidata_version == "16.0.0"
    category = {c: unicodedata2.category(chr(c)) for c in POINTS}
    for name in "LNMPSZ":
        assert regex_set(rf"\p{{{name}}}") == {
            c for c in POINTS if category[c][0] == name}, name
    onig_word = regex_set(r"\w")
    spaces = regex_set(r"\s")
    rust_word = probe(pre_tokenizers.Whitespace(), 1) - spaces
    digits = pre_tokenizers.Digits(individual_digits=True)
    numeric = probe(digits, 2)
    punctuation = probe(pre_tokenizers.Punctuation(), 2)
    strip = normalizers.StripAccents().normalize_str
    ccc = {c: combining_class(c) for c in POINTS}
    canon = {c: NFD(chr(c)) for c in POINTS
             if NFD(chr(c)) != chr(c) and not hangul(c)}
    compat = {c: NFKD(chr(c)) for c in POINTS
              if NFKD(chr(c)) != NFD(chr(c)) and not hangul(c)}
    pairs = {}
    for c, full in canon.items():
        if NFC(chr(c)) != chr(c):
            continue
        first = NFC(full[:-1])
        if len(first) == 1 and NFC(first + full[-1]) == chr(c):
            pairs[(ord(first), ord(full[-1]))] = c
    seconds = {b for _, b in pairs} | set(range(0x1161, 0x1176)) | set(
        range(0x11A8, 0x11C3))

    def value(c):
        bits = CATEGORIES.index(category[c])
        flags = (c in onig_word, c in rust_word, c in numeric,
                 c in punctuation, strip(chr(c)) == "",
                 ccc[c] != 0 or c in seconds, c in canon or hangul(c),
                 c in compat, NFC(chr(c)) != chr(c))
        for i, flag in enumerate(flags):
            bits |= flag << (5 + i)
        return bits

    runs, last = [], None
    for c in POINTS:
        v = value(c)
        if v != last:
            runs.append((c, v))
            last = v
    lower = [(c, ord(LOWER(chr(c)))) for c in POINTS
             if LOWER(chr(c)) != chr(c) and len(LOWER(chr(c))) == 1]
    odd = [c for c in POINTS if len(LOWER(chr(c))) > 1]
    assert odd == [0x130], odd
    return runs, ccc, canon, compat, pairs, lower


def rows(numbers):
    out, line = [], "   "
    for n in numbers:
        word = f" 0x{n:x}," if n > 9 else f" {n},"
        if len(line) + len(word) > 80:
            out.append(line)
            line = "   "
        line += word
    return out + [line]


def array(name, numbers):
    return [f"const std::uint32_t {name}[] = {{", *rows(numbers), "};",
            f"const std::size_t {name}Size = std::size({name});", ""]


def flat(mapping):
    """code point, length, replacement..."""
    for c in sorted(mapping):
        yield c
        yield len(mapping[c])
        yield from map(ord, mapping[c])


def main():
    runs, ccc, canon, compat, pairs, lower = build()
    lines = [
        "// Made by tools/make_unicode_tables.py; do not edit.",
        "// Regular expressions: Unicode 16.0.0. Other properties: as probed",
        "// from the package named there.",
        '#include "hearth/text/tokenizer/unicode_data_impl.h"', "",
        "#include <iterator>", "",
        "// clang-format off",
        "namespace hearth::data::unicode {", "",
    ]
    lines += array("kRuns", [x for run in runs for x in run])
    lines += array("kCombining", [c << 8 | ccc[c] for c in POINTS if ccc[c]])
    lines += array("kCanonical", flat(canon))
    lines += array("kCompatible", flat(compat))
    lines += array("kPairs", [x for (a, b), c in sorted(pairs.items())
                              for x in (a, b, c)])
    lines += array("kLower", [x for pair in lower for x in pair])
    lines += ["}  // namespace hearth::data::unicode"]
    root = pathlib.Path(__file__).resolve().parent.parent
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else (
        root / "src/hearth/text/tokenizer/unicode_data.cpp")
    out.write_text("\n".join(lines) + "\n")
    print(f"{out}: {len(runs)} runs, {len(canon)} canonical, "
          f"{len(compat)} compatible, {len(pairs)} pairs")


if __name__ == "__main__":
    main()
