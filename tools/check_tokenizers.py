#!/usr/bin/env python3
"""Holds `hearth tokenizer` against Hugging Face `tokenizers`, token for token.

  tools/check_tokenizers.py HEARTH [FOLDER_OR_FILE ...]

Without folders, every tokenizer.json under ../shared/data/tokenizers, or where
there are none the one of SmolLM2, exported from its GGUF. Encodes
prose, code, many scripts, random and broken text with and without special
tokens, decodes with and without them, and compares with the package. Exit 0:
equal; 1: not; 77: the package or the files are missing.
"""
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import peers
import serve_process

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared" / "data"
if not SHARED.exists():
    SHARED = ROOT.parent.parent / "shared" / "data"

try:
    from tokenizers import Tokenizer
except ImportError as error:
    peers.skip(error)

NASTY = [
    "", " ", "  ", "\n", "\r\n", "\t\t", " \n \n  x", "a", "'", "''", "'s", "'S",
    "'\u017f", "it's IT'S they'll THEY'LL we'Ve I'D o'\u017ft", "don't stop",
    "x  y   z    ", "   leading", "trailing   ", "\u3000\u3000a\u3000",
    "tab\tand\x0bvt\x0cff\x85nel\xa0nbsp\u2028ls\u2029ps", "1 12 123 1234 12345678",
    "\u0661\u0662\u0663 \u09ea\u09eb \u2167 \u00bd\u00b2\u00b3 \U0001d7d8\U0001d7d9",
    "Hello, world! How's it going?\n\n\nFine -- thanks...",
    "def f(x):\n    return x**2  # square\n\n\nclass A:\n\tpass\n",
    "for (int i = 0; i < n; ++i) { a[i] += b[i] * 0x1F; } // end\r\n",
    "\u4f60\u597d\uff0c\u4e16\u754c\u3002\u6211\u559c\u6b22\u81ea\u7136\u8bed\u8a00\u5904\u7406\u3002",
    "\u3053\u3093\u306b\u3061\u306f\u4e16\u754c\u30ab\u30bf\u30ab\u30ca\uff76\uff85\uff9e",
    "\uc548\ub155\ud558\uc138\uc694 \u1112\u1161\u11ab\u1100\u1173\u11af",
    "\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645 \u05e9\u05c1\u05b8\u05dc\u05d5\u05b9\u05dd",
    "\u0928\u092e\u0938\u094d\u0924\u0947 \u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35 \u0eaa\u0eb0\u0e9a\u0eb2\u0e8d\u0e94\u0eb5",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 \U0001f44d\U0001f3fd \U0001f1fa\U0001f1f8\U0001f3f4\u200d\u2620\ufe0f",
    "e\u0301 \u00e9 a\u0327\u0301 \u1e9b\u0323 \ufb01 \u2460 \u212b \uac00\u11a8 q\u0323\u0307",
    "\ufb00\ufb01 \u01c4\u01c5\u01c6 \u0130\u0131 \u00df \u1e9e \u0149 \u03a3\u03c2\u03c3",
    "CamelCaseWORDSAndHTTPServer iPhone15ProMax \u01c5abc \u02b0x\u0300Y",
    "\ufffd\ufffe\uffff\ufeffBOM\u200b\u200czw\u00adshy", "\x00\x01\x02\x7f\x80\x9f",
    "a\u0300\u0301\u0302b \u0300 \u0301x", "$100 \u20ac50 100% #tag @user a_b __init__",
    "https://example.com/a/b?c=d&e=f#g /usr/local/bin ///\n//\n/",
    "\u2581\u2581 \u2581a a\u2581b \u2581", "<0x0A> <unk> <s> </s> <pad> <bos>",
    "<|endoftext|> a <|im_start|>user\nhi<|im_end|>\n <|begin_of_text|>x<|eot_id|>",
    "<s>  [INST] hi [/INST]</s><\uff5cbegin\u2581of\u2581sentence\uff5c><\uff5cUser\uff5c>",
    "<start_of_turn>user\nx<end_of_turn>\n\n\n\n\t\t\t\t    <tool_call>{}</tool_call>",
    "\n\n\n\n\n\n  \n\n \t \n", "a\n b\n  c\n   d", " .,;:!?-_()[]{}'\"", "\u2019s \u2018quoted\u2019",
    "\U00020000\U0002a6df \U000107bb \U0001e900 \U00011de0 \u1c89 \ua7cb\ua7da",
    "\U0001d400\U0001d7ce\U0001f170\U0001fbf0", "x" * 200, " " * 200, "\n" * 100,
    "ab" * 300, "\u4e2d" * 300, "-" * 150, "1" * 70, "=" * 64 + "\n" + "*" * 33,
]


def repaired(data):
    return data.decode("utf-8", errors="replace")


def random_texts(rng, count):
    pools = [
        (0x20, 0x7F), (0x00, 0x100), (0x300, 0x370), (0x400, 0x500), (0x590, 0x700),
        (0x900, 0xE80), (0x1100, 0x1200), (0x2000, 0x2100), (0x2460, 0x2600),
        (0x3000, 0x3100), (0x4E00, 0x9FFF), (0xAC00, 0xD7A4), (0xF900, 0xFB50),
        (0xFE00, 0x10000), (0x10000, 0x11000), (0x1F300, 0x1FA00), (0x0, 0xD800),
        (0x1E000, 0x30000)]
    glue = [" ", "  ", "\n", "'s", "'", "\t", "\r\n", "1", "a", "Z", "\u2581", "\u0301"]
    for _ in range(count):
        out = []
        for _ in range(rng.randint(1, 40)):
            if rng.random() < 0.4:
                out.append(rng.choice(glue))
            else:
                low, high = rng.choice(pools)
                out.append(chr(rng.randrange(low, high)))
        yield "".join(out).encode("utf-8", "replace").decode("utf-8", "replace")
    for _ in range(count // 4):
        yield repaired(rng.randbytes(rng.randint(1, 200)))
        yield repaired(bytes(rng.choice(b"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xed\xa0 a")
                             for _ in range(rng.randint(1, 30))))


def corpus(scale):
    rng = random.Random(5)
    texts = list(NASTY)
    prose = [p for p in sorted((SHARED / "text").glob("*.txt"))]
    for path in prose:
        text = path.read_text(errors="replace")
        texts += [text[i:i + 4000] for i in range(0, len(text), max(4000, len(text) // 12))]
    for path in sorted(ROOT.glob("src/hearth/**/*.cpp"))[:20] + sorted(ROOT.glob("tools/*.py")):
        texts.append(path.read_text(errors="replace")[:20000])
    texts += random_texts(rng, int(600 * scale))
    if prose:
        text = prose[0].read_text(errors="replace")
        texts.append(text[:1 << 20].replace("\n", " "))
    texts.append("".join(rng.choice("abcdefgh") for _ in range(1 << 20)))
    texts.append("".join(chr(rng.randrange(0x4E00, 0x5E00)) for _ in range(1 << 18)))
    texts.append("a" * (1 << 20))
    texts.append(" " * (1 << 19) + "x")
    texts.append("<|" * (1 << 17) + "\n" * (1 << 17))
    return texts


def run(command, lines):
    data = "".join(json.dumps(line) + "\n" for line in lines)
    done = subprocess.run(command, input=data.encode(), capture_output=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: exit {done.returncode}: "
                         f"{done.stderr.decode(errors='replace').strip()}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def first_difference(a, b):
    for i, (x, y) in enumerate(zip(a, b)):
        if x != y:
            return i
    return min(len(a), len(b))


def report(path, what, text, ours, theirs):
    at = first_difference(ours, theirs)
    print(f"{path}: {what} differs at {at}: ours {ours[at:at + 6]!r}, "
          f"theirs {theirs[at:at + 6]!r}, in {text[:60]!r}")


def check(hearth, path, texts, rng):
    reference = Tokenizer.from_file(str(path))
    blocks = reference.truncation or reference.padding
    wrong = 0

    def compare(what, inputs, ours, theirs):
        nonlocal wrong
        assert len(ours) == len(theirs), (what, len(ours), len(theirs))
        for text, a, b in zip(inputs, ours, theirs):
            if a != b:
                wrong += 1
                if wrong <= 5:
                    report(path, what, str(text), a, b)

    base = [hearth, "tokenizer", "encode", "-t", str(path), "--jsonl"]
    if blocks:
        sample = texts[:60]
        compare("encode with the file's blocks", sample, run(base, sample),
                [e.ids for e in map(reference.encode, sample)])
        reference.no_truncation()
        reference.no_padding()
        base += ["--no-truncation", "--no-padding"]
    theirs = [reference.encode(t).ids for t in texts]
    compare("encode", texts, run(base, texts), theirs)
    few = texts[:200]
    compare("encode --no-special", few, run(base + ["--no-special"], few),
            [reference.encode(t, add_special_tokens=False).ids for t in few])

    size = reference.get_vocab_size()
    ids = theirs[:-6] + [[rng.randrange(size) for _ in range(rng.randint(1, 30))]
                         for _ in range(300)]
    for flag, skip in (("--skip-special", True), (None, False)):
        command = [hearth, "tokenizer", "decode", "-t", str(path), "--jsonl"]
        compare(f"decode skip={skip}", ids, run(command + ([flag] if flag else []), ids),
                [reference.decode(i, skip_special_tokens=skip) for i in ids])
    total = sum(map(len, theirs))
    print(f"{'ok  ' if not wrong else 'FAIL'} {path}: {len(texts)} texts, "
          f"{total} tokens, {len(ids)} decodings, {wrong} wrong")
    return wrong == 0


def main():
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    places = [pathlib.Path(p) for p in sys.argv[2:]] or [SHARED / "tokenizers"]
    files = [f for p in places
             for f in ([p] if p.is_file() else sorted(p.glob("**/tokenizer.json")))]
    texts = corpus(1.0)
    rng = random.Random(7)
    with tempfile.TemporaryDirectory() as folder:
        files = files or [exported_smollm2(sys.argv[1], folder)]
        results = [check(sys.argv[1], f, texts, rng) for f in files]
    return 0 if all(results) else 1


def exported_smollm2(hearth, folder):
    """A real vocabulary where none lies next door: the one in SmolLM2's GGUF."""
    model = serve_process.small_chat_model()
    if not model:
        peers.skip_without(f"tokenizer.json in {SHARED / 'tokenizers'}, nor SmolLM2")
    out = pathlib.Path(folder) / "smollm2"
    subprocess.run([hearth, "export", "hf", model, "-o", out, "--quiet"], check=True)
    return out / "tokenizer.json"


if __name__ == "__main__":
    sys.exit(main())
