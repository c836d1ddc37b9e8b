#!/usr/bin/env python3
"""Holds every tokenizer component of Hearth against the package it imitates.

  tools/check_tokenizer_parts.py HEARTH

Makes small tokenizers in a temporary folder, one for each normaliser,
pre-tokenizer, decoder, model option and kind of added token, and compares ids
and texts with Hugging Face `tokenizers`; trains with both and compares the
files; trains SentencePiece models and compares with `sentencepiece`. Exit 0:
equal; 1: not; 77: a package is missing.
"""
import json
import pathlib
import random
import sys
import tempfile

import peers

try:
    import sentencepiece
    from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers,
                            pre_tokenizers, processors, trainers)
except ImportError as error:
    peers.skip(error)

from check_tokenizers import NASTY, SHARED, random_texts, run

N, P, D = normalizers, pre_tokenizers, decoders
rng = random.Random(11)
TEXTS = [t for t in NASTY if len(t) < 400] + list(random_texts(rng, 400))
PROSE = ("The quick brown fox jumps over the lazy dog. It's 1984; don't panic!\n"
         "Caf\u00e9 na\u00efve \u2581 \u4f60\u597d\u4e16\u754c 123 4567 foo_bar(x) -> y\n") * 30
WORDS = PROSE.split()

NORMALIZERS = {
    "nfc": N.NFC(), "nfd": N.NFD(), "nfkc": N.NFKC(), "nfkd": N.NFKD(), "nmt": N.Nmt(),
    "lower": N.Lowercase(), "accents": N.Sequence([N.NFD(), N.StripAccents()]),
    "strip": N.Strip(), "strip-left": N.Strip(True, False), "strip-right": N.Strip(False, True),
    "prepend": N.Sequence([N.Prepend("\u2581"), N.Replace(" ", "\u2581")]),
    "replace": N.Replace(Regex(r"\s+"), " "), "replace-class": N.Replace(Regex(r"[^\w\s]"), "."),
    "bytes": N.ByteLevel(),
}
SPLITS = {
    "digits": P.Digits(False), "each-digit": P.Digits(True), "words": P.Whitespace(),
    "white": P.WhitespaceSplit(), "delimiter": P.CharDelimiterSplit("x"),
    "metaspace": P.Metaspace(), "metaspace-first": P.Metaspace(prepend_scheme="first"),
    "metaspace-never": P.Metaspace(prepend_scheme="never", split=False),
    "bytes-prefix": P.ByteLevel(add_prefix_space=True),
    "bytes-inside": P.Sequence([P.ByteLevel(add_prefix_space=True), P.Digits(True)]),
    "sequence": P.Sequence([P.Whitespace(), P.Punctuation(), P.Digits(True)]),
    "metaspace-bytes": P.Sequence([P.Digits(True), P.Metaspace(split=False)]),
}
for how in ("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"):
    SPLITS["punctuation-" + how] = P.Punctuation(how)
    for flip in (False, True):
        SPLITS[f"split-{how}-{flip}"] = P.Split(Regex(r"\s|[aeiou]"), how, flip)
        SPLITS[f"literal-{how}-{flip}"] = P.Split("o", how, flip)
PATTERNS = [
    r"\w+|[^\w\s]+", r"\p{Lu}\p{Ll}*|\p{N}{1,2}", r"(?i:'s|'ll)|\S+?(?=e)", r"\d+(?!\.)", r"\b\w\B|\W\b",
    r"[\p{Han}\p{Hiragana}]+|\P{L}", r"^\s*|\s+$", r"(?<=a)b?", r"[^\P{L}a-z]++", r"\h+", r"a*",
    r"[\u4e00-\u9fff]+|\x41", r"[\[\]\-\\^]|[a\p{Nd}]+", r"(?:ab|a)(?>b*)c?", r"\p{^L}+",
]
DECODERS = {
    "fallback": D.Sequence([D.Replace("\u2581", " "), D.ByteFallback(), D.Fuse(), D.Strip(" ", 1, 0)]),
    "metaspace": D.Metaspace(), "metaspace-never": D.Metaspace(prepend_scheme="never"),
    "wordpiece": D.WordPiece(), "wordpiece-plain": D.WordPiece("##", False), "bpe": D.BPEDecoder(),
    "strip": D.Strip("a", 2, 0), "regex": D.Replace(Regex(r"[aeiou]+"), "*"), "none": None,
}


def trained(normalizer=None, pre=None, **options):
    model = models.BPE(unk_token="<unk>", **options)
    tokenizer = Tokenizer(model)
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    if pre is not None:
        tokenizer.pre_tokenizer = pre
    tokenizer.train_from_iterator(
        [PROSE, " ".join(NASTY)], trainers.BpeTrainer(
            vocab_size=700, show_progress=False, special_tokens=["<unk>"],
            continuing_subword_prefix=options.get("continuing_subword_prefix", ""),
            end_of_word_suffix=options.get("end_of_word_suffix", "")))
    return tokenizer


def cases():
    for name, normalizer in NORMALIZERS.items():
        yield "normalizer " + name, trained(normalizer=normalizer)
    for name, pre in SPLITS.items():
        yield "pre_tokenizer " + name, trained(pre=pre)
    for pattern in PATTERNS:
        yield "pattern " + pattern, trained(pre=P.Split(Regex(pattern), "isolated"))
    for name, decoder in DECODERS.items():
        tokenizer = trained(pre=P.Metaspace())
        if decoder is not None:
            tokenizer.decoder = decoder
        yield "decoder " + name, tokenizer
    yield "fuse_unk", trained(fuse_unk=True)
    yield "ignore_merges", trained(pre=P.WhitespaceSplit(), ignore_merges=True)
    yield "suffix", trained(pre=P.WhitespaceSplit(), end_of_word_suffix="</w>")
    yield "prefix", trained(pre=P.WhitespaceSplit(), continuing_subword_prefix="##")
    yield from added_cases()
    yield from unigram_cases()


def added_cases():
    for flags in range(32):
        names = ("single_word", "lstrip", "rstrip", "normalized", "special")
        chosen = {n: bool(flags >> i & 1) for i, n in enumerate(names)}
        tokenizer = trained(normalizer=N.Lowercase(), pre=P.Whitespace())
        for text in ("<sep>", "fox", "a b", "Caf\u00e9", "<se"):
            tokenizer.add_tokens([AddedToken(text, **chosen)])
        yield f"added {chosen}", tokenizer
    tokenizer = trained(pre=P.Whitespace())
    tokenizer.add_special_tokens(["<s>", "</s>"])
    s, e = tokenizer.token_to_id("<s>"), tokenizer.token_to_id("</s>")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s> </s>", special_tokens=[("<s>", s), ("</s>", e)])
    yield "template", tokenizer
    for direction in ("left", "right"):
        tokenizer = Tokenizer.from_str(tokenizer.to_str())
        tokenizer.enable_truncation(7, direction=direction)
        tokenizer.enable_padding(direction=direction, length=9, pad_id=3, pad_to_multiple_of=4)
        yield "truncation and padding " + direction, tokenizer
    tokenizer = trained(pre=P.Whitespace())
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 5), ("<s>", 4))
    yield "roberta", tokenizer


def unigram_cases():
    pieces = [("<unk>", 0.0), ("\u2581", -3.0), ("a", -4.0), ("b", -4.5), ("ab", -5.0),
              ("abc", -5.5), ("c", -6.0), ("the", -4.2), ("t", -5.0), ("h", -5.1), ("e", -4.9),
              ("\u4f60", -7.0), ("\u4f60\u597d", -7.5), ("er", -6.1), ("re", -6.2), (" ", -2.0)]
    bytes_ = [(f"<0x{b:02X}>", -20.0) for b in range(256)]
    for name, vocab, fallback in (("plain", pieces, False), ("bytes", pieces + bytes_, True)):
        tokenizer = Tokenizer(models.Unigram(vocab, 0, fallback))
        tokenizer.pre_tokenizer = P.Metaspace()
        tokenizer.decoder = DECODERS["fallback"]
        yield "unigram " + name, tokenizer
    charsmap = spm_charsmap()
    tokenizer = Tokenizer(models.Unigram(pieces + bytes_, 0, True))
    tokenizer.normalizer = N.Precompiled(charsmap)
    yield "precompiled charsmap", tokenizer


def train_sentencepiece(folder, kind, fallback, rule):
    prefix = str(pathlib.Path(folder) / f"{kind}-{fallback}-{rule}")
    text = pathlib.Path(folder) / "text.txt"
    text.write_text(PROSE + "\n".join(" ".join(rng.choices(WORDS, k=12)) for _ in range(300)))
    sentencepiece.SentencePieceTrainer.train(
        input=str(text), model_prefix=prefix, vocab_size=450 if fallback else 180,
        model_type=kind, byte_fallback=fallback, normalization_rule_name=rule, minloglevel=2,
        hard_vocab_limit=False, remove_extra_whitespaces=rule != "identity",
        user_defined_symbols=["<sep>", "foo bar"] if fallback else [])
    return prefix + ".model"


def spm_charsmap():
    with tempfile.TemporaryDirectory() as folder:
        path = train_sentencepiece(folder, "unigram", False, "nmt_nfkc")
        from sentencepiece import sentencepiece_model_pb2
        model = sentencepiece_model_pb2.ModelProto()
        model.ParseFromString(pathlib.Path(path).read_bytes())
        return model.normalizer_spec.precompiled_charsmap


def equal(what, inputs, ours, theirs):
    wrong = [(i, a, b) for i, a, b in zip(inputs, ours, theirs) if a != b]
    if wrong or len(ours) != len(theirs):
        print(f"FAIL {what}: {len(wrong)} of {len(inputs)} differ")
        for text, a, b in wrong[:3]:
            print(f"     {text!r}\n     ours   {a!r}\n     theirs {b!r}")
    return not wrong and len(ours) == len(theirs)


def check_component(hearth, path, name, tokenizer):
    tokenizer.save(str(path))
    loaded = Tokenizer.from_file(str(path))
    encode = [hearth, "tokenizer", "encode", "-t", str(path), "--jsonl", "--quiet"]
    decode = [hearth, "tokenizer", "decode", "-t", str(path), "--jsonl"]
    ids = [loaded.encode(t).ids for t in TEXTS]
    ok = equal(name, TEXTS, run(encode, TEXTS), ids)
    some = [i for i in ids if i] + [[rng.randrange(loaded.get_vocab_size())
                                     for _ in range(9)] for _ in range(100)]
    for skip in (False, True):
        flag = ["--skip-special"] if skip else []
        ok &= equal(f"{name}, decoding", some, run(decode + flag, some),
                    [loaded.decode(i, skip_special_tokens=skip) for i in some])
    return ok


def check_training(hearth, folder):
    import subprocess
    ok = True
    texts = sorted((SHARED / "text").glob("*.txt"))[:2]
    own = pathlib.Path(folder) / "own.txt"
    own.write_text(PROSE + "aaaa aaaaa\n" * 9)
    for path in [own, *texts]:
        theirs = Tokenizer(models.BPE())
        theirs.pre_tokenizer = P.ByteLevel(add_prefix_space=False)
        theirs.train([str(path)], trainers.BpeTrainer(
            vocab_size=2000, min_frequency=2, special_tokens=["<|a|>", "<|b|>"],
            initial_alphabet=P.ByteLevel.alphabet(), show_progress=False))
        want = json.loads(theirs.to_str())["model"]
        for threads in ("1", "2", "5"):
            out = str(pathlib.Path(folder) / "trained.json")
            subprocess.run([hearth, "tokenizer", "train", str(path), "-o", out, "--vocab", "2000",
                            "--special", "<|a|>", "--special", "<|b|>", "--force", "--threads",
                            threads], check=True, capture_output=True)
            got = json.loads(pathlib.Path(out).read_text())["model"]
            same = got["vocab"] == want["vocab"] and got["merges"] == want["merges"]
            if not same:
                print(f"FAIL training on {path.name}, {threads} threads")
            ok &= same
            ok &= check_component(hearth, out, f"trained on {path.name}", Tokenizer.from_file(out))
    return ok


def check_sentencepiece(hearth, folder):
    ok = True
    texts = [t for t in TEXTS if "\0" not in t]
    paths = [train_sentencepiece(folder, kind, fallback, rule) for kind in ("bpe", "unigram")
             for fallback in (False, True) for rule in ("nmt_nfkc", "identity")]
    paths += [str(p) for p in sorted((SHARED / "weights").glob("*/tokenizer.model"))]
    for path in paths:
        reference = sentencepiece.SentencePieceProcessor(model_file=path)
        encode = [hearth, "tokenizer", "encode", "-t", path, "--jsonl", "--no-special",
                  "--plain-special"]
        ids = [reference.encode(t) for t in texts]
        ok &= equal(path, texts, run(encode, texts), ids)
        decode = [hearth, "tokenizer", "decode", "-t", path, "--jsonl"]
        ok &= equal(path + ", decoding", ids, run(decode, ids), [reference.decode(i) for i in ids])
    return ok, len(paths)


def main():
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    hearth, ok, count = sys.argv[1], True, 0
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "tokenizer.json"
        for name, tokenizer in cases():
            ok &= check_component(hearth, path, name, tokenizer)
            count += 1
        ok &= check_training(hearth, folder)
        pieces, models_ = check_sentencepiece(hearth, folder)
        ok &= pieces
    print(f"{'ok' if ok else 'FAIL'}: {count} small tokenizers, training, {models_} "
          f"SentencePiece models, {len(TEXTS)} texts each")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
