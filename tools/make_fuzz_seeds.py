#!/usr/bin/env python3
"""Writes the whole, small tokenizers, records and deep sources that fuzzing starts from.

  tools/make_fuzz_seeds.py [FOLDER]

By Hugging Face `tokenizers` and `sentencepiece`, into tests/fuzz/seeds: a
fuzzer that begins with nothing spends its time on the first bracket. Exit 77:
a package is missing.
"""
import json
import pathlib
import sys
import tempfile

try:
    import sentencepiece
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
except ImportError:
    print("skipped: pip install tokenizers sentencepiece")
    sys.exit(77)

N, P, D = normalizers, pre_tokenizers, decoders
BYTES = sorted(P.ByteLevel.alphabet())
PIECES = [("<unk>", 0.0), ("\u2581", -3.0), ("a", -4.0), ("ab", -5.0), ("b", -4.5), ("\u4f60", -7.0)]
# Characters, and what they become: SentencePiece compiles them to a charsmap.
RULES = "41\t61\nC9\t65\n1F600\t3A 29\n"
TEXT = "the cat sat on the mat, the caf\u00e9 is open\n" * 40


def bpe(tokens, merges, **options):
    return Tokenizer(models.BPE({t: i for i, t in enumerate(tokens)}, merges, **options))


def byte_level():
    tokenizer = bpe(BYTES + ["th", "the", "\u0120the"], [("t", "h"), ("th", "e"), ("\u0120", "the")])
    tokenizer.normalizer = N.NFC()
    tokenizer.pre_tokenizer = P.Sequence([
        P.Split(Regex(r"(?i:'s|'t)|\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"), "isolated"),
        P.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = D.ByteLevel()
    tokenizer.add_special_tokens([AddedToken("<s>", special=True)])
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 259)])
    tokenizer.enable_truncation(9)
    tokenizer.enable_padding(pad_id=259, pad_token="<s>", length=5)
    return tokenizer


def byte_fallback():
    tokens = ["<unk>"] + [f"<0x{b:02X}>" for b in range(256)] + ["\u2581", "a", "b", "ab"]
    tokenizer = bpe(tokens, [("a", "b")], unk_token="<unk>", byte_fallback=True, fuse_unk=True)
    tokenizer.normalizer = N.Sequence([N.Prepend("\u2581"), N.Replace(" ", "\u2581")])
    tokenizer.decoder = D.Sequence([D.Replace("\u2581", " "), D.ByteFallback(), D.Fuse(), D.Strip(" ", 1, 0)])
    return tokenizer


def parts():
    tokenizer = bpe(["<unk>", "a", "b", "ab", "1"], [("a", "b")], unk_token="<unk>")
    tokenizer.normalizer = N.Sequence([N.NFKC(), N.Lowercase(), N.Strip(), N.Replace(Regex(r"\s+"), " ")])
    tokenizer.pre_tokenizer = P.Sequence([P.Whitespace(), P.Punctuation(), P.Digits(True)])
    tokenizer.add_tokens([AddedToken("x y", single_word=True, lstrip=True, rstrip=True, normalized=False)])
    return tokenizer


def unigram(charsmap):
    tokenizer = Tokenizer(models.Unigram(PIECES, 0, False))
    tokenizer.normalizer = N.Precompiled(charsmap)
    tokenizer.pre_tokenizer = P.Metaspace()
    tokenizer.decoder = D.Metaspace()
    return tokenizer


def sentencepiece_model(folder, kind):
    (folder / "text.txt").write_text(TEXT)
    (folder / "rules.tsv").write_text(RULES)
    prefix = str(folder / kind)
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "text.txt"), model_prefix=prefix, model_type=kind, vocab_size=40, hard_vocab_limit=False,
        normalization_rule_tsv=str(folder / "rules.tsv"), user_defined_symbols=["<sep>"], minloglevel=2)
    return pathlib.Path(prefix + ".model").read_bytes()


RECORDS = [
    {"text": "a b"}, {"prompt": "2 + 2?", "completion": "4", "answer": [4, -1.5e3, None, True]},
    {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "", "train": False, "tool_calls": [
        {"type": "function", "function": {"name": "f", "arguments": {"a": "\u4f60\n\""}}}]}], "tools": []},
    {"prompt": "x", "chosen": "a", "rejected": "b"},
    {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}]}, {"role": "assistant", "content": None, "weight": 0,
                                                                             "tool_calls": [{"name": "f", "arguments": "{}"}]}]},
    {"instruction": "a", "input": "b", "output": "c"}, {"question": "a", "context": "b", "answer": "c", "id": "d"},
    {"conversations": [{"from": "human", "value": "a"}, {"from": "function_call", "value": '{"name": "f"}'}, "b"], "system": "s"},
    {"prompt": [{"role": "user", "content": "a"}], "chosen": {"from": "gpt", "value": "b"}, "rejected": "c"},
    {"input": {"messages": ["a"], "tools": "[]"}, "preferred_output": ["b"], "non_preferred_output": ["c"]},
    {"prompt": "a", "completion": "b", "label": True}, {"messages": '[{"role": "user", "content": "a"}]'},
]
TABLES = {"comma": 'a,b\n"x, ""y""\nz",1\n,\n', "tabs": "a\tb\r\n1\t2\r\n", "member": '{"n": 1, "data": [{"text": "a"}], "by": "us"}',
          "wide": "\ufeffa;b\n\U0001f600;c\n"}


def nested(text, before, after, depth):
    return before * depth + text + after * depth


def chain(count):
    return "root ::= r0\n" + "".join(f"r{i} ::= r{i + 1}\n" for i in range(count)) + f'r{count} ::= "a"\n'


# Sources that go as deep as readers let them, and deeper: a fuzzer's own inputs are too short for that.
DEEP = {
    "grammar_gbnf": {
        "deep_groups": "root ::= " + nested('"a"', "(", '"b")+', 100), "deeper_groups": "root ::= " + nested("a", "(", ")", 400),
        "chain": chain(3000), "counts": "root ::= " + nested('"a" "b"', "(", ")" + "{3,70}", 20),
        "alike": "root ::= " + " | ".join(f'"aaa{i:03d}" [a-z]{{9,99}}' for i in range(200))},
    "grammar_regex": {
        "deep_groups": nested("a", "(", "|b)*", 100), "counts": nested("ab?", "(", "){0,90}", 60), "look": nested("a", "(?=", ")", 200),
        "classes": r"(\p{L}|[^\p{N}a-c]){70,}" * 20},
    "grammar_schema": {
        "deep_anyof": nested('{"type":"null"}', '{"anyOf":[{"type":"string","maxLength":70},', "]}", 31),
        "deep_items": nested("true", '{"prefixItems":[true,', '],"maxItems":99}', 62),
        "prefix": json.dumps({"prefixItems": [True, {"const": 1}] * 800, "minItems": 700}),
        "deep_all_of": nested('{"items":{"enum":[1,2]}}', '{"allOf":[{"prefixItems":[{"enum":[1]}]},', "]}", 31),
        "two_recursions": json.dumps({"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}], "$defs": {
            "a": {"properties": {"n": {"$ref": "#/$defs/a"}}}, "b": {"properties": {"n": {"$ref": "#/$defs/b"}}}}}),
        "references": json.dumps({"$ref": "#/$defs/d0", "$defs": {
            **{f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(400)}, "d400": {"type": "null"}}})},
    "chat_request": {
        "deep.json": '{"model":"m","messages":[{"role":"user","content":' + nested("1", "[", "]", 70) + "}]}"},
}


def write_deep(out):
    for target, sources in DEEP.items():
        (out / target).mkdir(parents=True, exist_ok=True)
        for name, text in sources.items():
            (out / target / name).write_text(text)


def main():
    source = pathlib.Path(__file__).resolve().parent.parent
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else source / "tests/fuzz/seeds"
    jsons, models_ = out / "tokenizer_json", out / "tokenizer_model"
    for folder in (jsons, models_, out / "jsonl", out / "table"):
        folder.mkdir(parents=True, exist_ok=True)
    write_deep(out)
    for i, record in enumerate(RECORDS):
        (out / "jsonl" / f"{i}.jsonl").write_text(json.dumps(record))
    for name, text in TABLES.items():
        (out / "table" / name).write_bytes(text.encode("utf-16-le" if name == "wide" else "utf-8"))
    from sentencepiece import sentencepiece_model_pb2
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("unigram", "bpe"):
            made = sentencepiece_model(pathlib.Path(folder), kind)
            (models_ / f"{kind}.model").write_bytes(made)
        proto = sentencepiece_model_pb2.ModelProto()
        proto.ParseFromString(made)
    charsmap = proto.normalizer_spec.precompiled_charsmap
    for make in (byte_level, byte_fallback, parts):
        (jsons / f"{make.__name__}.json").write_text(make().to_str(), encoding="utf-8")
    (jsons / "unigram.json").write_text(unigram(charsmap).to_str(), encoding="utf-8")


if __name__ == "__main__":
    main()
