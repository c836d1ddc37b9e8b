#!/usr/bin/env python3
"""A GGUF file's tokenizer, exported, against the tokenizer it came from.

  check_gguf_tokenizers.py HEARTH [FOLDER]

FOLDER (../shared/data/tokenizers) has real tokenizers. Each goes into a GGUF
file as llama.cpp's converter writes it, `hearth export hf` makes a folder of
that, and transformers must load it and give the original's ids and texts, and
the same chat prompt. A SentencePiece model is trained here where the package
is there. Exit 77: a package or the folder is missing.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import peers

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error", HF_HUB_DISABLE_PROGRESS_BARS="1")
try:
    import gguf
    import numpy as np
    import sentencepiece
    import transformers
    from tokenizers import Tokenizer
except ImportError as error:
    peers.skip(error)

ROOT = pathlib.Path(__file__).resolve().parent.parent
TEMPLATE = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{{ eos_token }}{% endfor %}"
PRE = {"gpt2": "gpt-2", "qwen2_5": "qwen2", "smollm2": "smollm"}
TEXTS = [
    "Hello world", " leading space", "trailing  ", "two  spaces\tand tab\n\nlines\r\n", "", " ",
    "It's 1234567 o'clock, they'll don't I'VE", "naïve café — “quotes” … €5", "日本語のテキスト 漢字 한국어 ไทย",
    "emoji 👩‍👩‍👧 🙂 \u200b zero", "def f(x):\n    return x**2  # code\n", "ﷺ א ب ½ ² Ⅷ", "a" * 200, "\u0000\u0001 control",
]
TYPE = {"normal": 1, "unknown": 2, "control": 3, "user": 4, "unused": 5, "byte": 6}


def texts_of(folder):
    """The edge cases, and real prose where it is there."""
    prose = folder.parent / "text/wikitext-2.valid.txt"
    # SentencePiece alone takes the text of a special token for plain text.
    return TEXTS + (prose.read_text()[:60000].replace("<unk>", "unk").splitlines() if prose.exists() else [])


def byte_level(folder, pre):
    """What a converter adds for a byte-level BPE."""
    raw = json.loads((folder / "tokenizer.json").read_text())
    tokens = {i: t for t, i in raw["model"]["vocab"].items()}
    types = {}
    for added in raw["added_tokens"]:
        tokens[added["id"]] = added["content"]
        types[added["id"]] = TYPE["control" if added["special"] else "user"]
    merges = [m if isinstance(m, str) else " ".join(m) for m in raw["model"]["merges"]]
    count = max(tokens) + 1

    def add(w):
        w.add_tokenizer_model("gpt2")
        w.add_tokenizer_pre(pre)
        w.add_token_list([tokens.get(i, f"[PAD{i}]") for i in range(count)])
        w.add_token_types([types.get(i, TYPE["normal"] if i in tokens else TYPE["unused"]) for i in range(count)])
        w.add_token_merges(merges)
        w.add_chat_template(TEMPLATE)
    original = Tokenizer.from_file(str(folder / "tokenizer.json"))
    original.no_padding()
    original.no_truncation()
    special = [a["id"] for a in raw["added_tokens"] if a["special"]]
    return count, (special[0], special[-1]), add, lambda text: original.encode(text, add_special_tokens=False).ids


def pieces(model, prefix):
    """What a converter adds for a SentencePiece model, BOS and all."""
    sp = sentencepiece.SentencePieceProcessor(model_file=str(model))
    kind = lambda i: ("unknown" if sp.is_unknown(i) else "control" if sp.is_control(i) else "byte" if sp.is_byte(i)
                      else "unused" if sp.is_unused(i) else "normal")

    def add(w):
        w.add_tokenizer_model("llama")
        w.add_tokenizer_pre("default")
        w.add_token_list([sp.id_to_piece(i) for i in range(len(sp))])
        w.add_token_scores([sp.get_score(i) for i in range(len(sp))])
        w.add_token_types([TYPE[kind(i)] for i in range(len(sp))])
        w.add_unk_token_id(sp.unk_id())
        w.add_add_bos_token(True)
        w.add_add_space_prefix(prefix)
        w.add_chat_template(TEMPLATE)
    return len(sp), (sp.bos_id(), sp.eos_id()), add, sp.encode


def trained_pieces(work, folder, prefix):
    prose = work / "prose.txt"
    prose.write_text("\n".join(t for t in texts_of(folder) if t.strip() and "\0" not in t))
    name = work / f"trained-{prefix}"
    sentencepiece.SentencePieceTrainer.train(
        input=str(prose), model_prefix=str(name), vocab_size=700, model_type="bpe", byte_fallback=True,
        character_coverage=0.99, add_dummy_prefix=prefix, remove_extra_whitespaces=False,
        normalization_rule_name="identity", minloglevel=2)
    return pieces(f"{name}.model", prefix)


def run(program, *words, stdin=None):
    done = subprocess.run([program, *map(str, words)], capture_output=True, input=stdin)
    if done.returncode:
        raise SystemExit(f"FAIL hearth {' '.join(map(str, words))}: {done.stderr.decode()}")
    return done.stdout.decode()


def write_gguf(path, count, add, ends):
    """The smallest Llama for `count` tokens; `add` brings the tokenizer."""
    width, heads = 8, 2
    w = gguf.GGUFWriter(path, "llama")
    w.add_context_length(128)
    w.add_embedding_length(width)
    w.add_block_count(1)
    w.add_feed_forward_length(width)
    w.add_head_count(heads)
    w.add_head_count_kv(heads)
    w.add_layer_norm_rms_eps(1e-5)
    w.add_rope_freq_base(10000.0)
    w.add_bos_token_id(ends[0])
    w.add_eos_token_id(ends[1])
    add(w)
    square = ["attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"]
    shapes = {"token_embd": (count, width), "output": (count, width), "output_norm": (width,),
              "blk.0.attn_norm": (width,), "blk.0.ffn_norm": (width,)}
    shapes |= {f"blk.0.{name}": (width, width) for name in square}
    rng = np.random.default_rng(7)
    for name, shape in shapes.items():
        w.add_tensor(name + ".weight", rng.standard_normal(shape).astype(np.float32))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def check(program, work, name, made, texts):
    count, ends, add, original = made
    path, out = work / f"{name}.gguf", work / name
    write_gguf(path, count, add, ends)
    run(program, "export", "hf", path, "-o", out)
    theirs = transformers.AutoTokenizer.from_pretrained(out)
    lines = "\n".join(json.dumps(t) for t in texts) + "\n"
    ours = [json.loads(line) for line in run(program, "tokenizer", "encode", "-t", path, "--jsonl", "--no-special",
                                             stdin=lines.encode()).splitlines()]
    again = [json.loads(line) for line in run(program, "tokenizer", "encode", "-t", out, "--jsonl", "--no-special",
                                              stdin=lines.encode()).splitlines()]
    for text, mine, exported in zip(texts, ours, again, strict=True):
        want, got = original(text), theirs.encode(text, add_special_tokens=False)
        if not got == mine == want == exported:
            raise SystemExit(f"FAIL {name}: {text!r}: original {want[:20]}, transformers on the export {got[:20]}, "
                             f"hearth on the GGUF {mine[:20]}, on the export {exported[:20]}")
    special = run(program, "tokenizer", "encode", "-t", path, stdin=b"some text").split()
    if theirs.encode("some text") != [int(i) for i in special]:
        raise SystemExit(f"FAIL {name}: with special tokens {theirs.encode('some text')}, not {special}")
    messages = [{"role": "user", "content": "hi there"}]
    (work / "messages.json").write_text(json.dumps(messages))
    prompt = run(program, "tokenizer", "template", "-t", path, "--messages", work / "messages.json")
    if theirs.apply_chat_template(messages, tokenize=False) != prompt:
        raise SystemExit(f"FAIL {name}: the chat template gives another prompt")
    print(f"{name}: {count} tokens, {len(texts)} texts: transformers, hearth and the original agree", flush=True)


def main():
    program = os.path.abspath(sys.argv[1])
    folder = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else ROOT / "../shared/data/tokenizers").resolve()
    texts = texts_of(folder)
    with tempfile.TemporaryDirectory() as scratch:
        work = pathlib.Path(scratch)
        for prefix in (True, False):
            check(program, work, f"sentencepiece-{prefix}", trained_pieces(work, folder, prefix), texts)
        if not folder.exists():
            print(f"SKIP: the real tokenizers: no {folder}")
            return
        for name, pre in PRE.items():
            check(program, work, name, byte_level(folder / name, pre), texts)
        for model in sorted(folder.glob("*/tokenizer.model")):
            check(program, work, model.parent.name, pieces(model, True), texts)


if __name__ == "__main__":
    main()
