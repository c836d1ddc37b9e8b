"""hearth generate and hearth eval ppl on a tiny model: results, --json, and bad input in one clear line."""
import json
import math
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import unittest

HEARTH = os.environ["HEARTH_BINARY"]
MODELS = pathlib.Path(os.environ["HEARTH_SOURCE"]) / "tests/golden/models"
STORY = "the cat sat on the mat and the dog sat on the log while the sun went down over the hill\n" * 40
TEMPLATE = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>"


def hearth(*words, stdin=None):
    """Bytes are decoded here: text mode would turn a generated \\r into \\n."""
    stdin = None if stdin is None else stdin.encode()
    run = subprocess.run([HEARTH, *map(str, words)], capture_output=True, input=stdin)
    run.stdout, run.stderr = run.stdout.decode(), run.stderr.decode()
    return run


def interrupt_when_asked(test, run):
    """Ctrl-C once the command answers it itself: before, the system would end it."""
    caught = pathlib.Path(f"/proc/{run.pid}/status")
    if not caught.exists():
        run.kill()
        test.skipTest("no /proc to see whether signals are caught")
    limit = time.time() + 60
    while time.time() < limit and run.poll() is None:
        mask = int(re.search(r"SigCgt:\s*([0-9a-f]+)", caught.read_text()).group(1), 16)
        if mask >> (signal.SIGINT - 1) & 1:
            break
        time.sleep(0.01)
    run.send_signal(signal.SIGINT)


def token_bytes(text):
    """A token of --logprobs: its text, or its bytes where they are none."""
    if not text.startswith("bytes:"):
        return text.encode()
    return bytes(int(b, 16) for b in text[len("bytes:\\x"):].split("\\x"))


def read_safetensors(path):
    raw = path.read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    return json.loads(raw[8:8 + size]), bytearray(raw[8 + size:])


def write_safetensors(path, header, data):
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


class Folder(unittest.TestCase):
    """A copy of a golden model whose vocabulary is widened to hold a byte-level tokenizer."""

    VOCAB = 300

    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.root = pathlib.Path(self.temporary.name)
        self.model = self.root / "model"
        self.model.mkdir()
        source = MODELS / "llama-tied"
        self.config = json.loads((source / "config.json").read_text())
        header, data = read_safetensors(source / "model.safetensors")
        self.widen(header, data)
        self.config.update(vocab_size=self.VOCAB, eos_token_id=299)
        self.write_config()
        (self.root / "text.txt").write_text(STORY)
        run = hearth("tokenizer", "train", self.root / "text.txt", "--vocab", self.VOCAB, "--special", "<|end|>",
                     "-o", self.model / "tokenizer.json", "--quiet")
        self.assertEqual(run.returncode, 0, run.stderr)

    def widen(self, header, data):
        """The embedding's rows again, turned by some elements, up to VOCAB of them."""
        name = "model.embed_tokens.weight"
        begin, end = header[name]["data_offsets"]
        rows, width = header[name]["shape"]
        row, item = (end - begin) // rows, (end - begin) // (rows * width)
        table = b""
        for i in range(self.VOCAB):
            one = bytes(data[begin + i % rows * row:][:row])
            table += one[i // rows * item:] + one[:i // rows * item]
        out, made = bytearray(), {}
        for key, entry in header.items():
            if key == "__metadata__":
                continue
            b, e = entry["data_offsets"]
            piece = table if key == name else bytes(data[b:e])
            shape = [self.VOCAB, width] if key == name else entry["shape"]
            made[key] = {"dtype": entry["dtype"], "shape": shape, "data_offsets": [len(out), len(out) + len(piece)]}
            out += piece
        self.header, self.data = made, out
        self.write_weights()

    def write_weights(self):
        write_safetensors(self.model / "model.safetensors", self.header, bytes(self.data))

    def write_config(self):
        (self.model / "config.json").write_text(json.dumps(self.config))

    def refused(self, *words, says, code=2):
        run = hearth(*words)
        self.assertEqual(run.returncode, code, run.stderr)
        self.assertEqual(run.stdout, "")
        lines = run.stderr.splitlines()
        self.assertTrue(lines and lines[0].startswith("error: "), run.stderr)
        self.assertLessEqual(len(lines), 2, run.stderr)
        for part in [says] if isinstance(says, str) else says:
            self.assertIn(part, lines[0])
        return run

    def generate(self, *words, **more):
        run = hearth("generate", self.model, *words, "--json", **more)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        document = json.loads(run.stdout)
        self.assertEqual(document["schema"], "hearth.generate/1")
        return document


class Generate(Folder):
    def test_text_is_that_of_the_ids_and_streams_the_same(self):
        words = ["-p", "the cat", "--max-tokens", "20"]
        document = self.generate(*words)
        self.assertEqual(document["finish"], "length")
        self.assertEqual(len(document["ids"]), 20)
        decoded = hearth("tokenizer", "decode", "-t", self.model, "--skip-special",
                         stdin=" ".join(map(str, document["ids"]))).stdout
        self.assertEqual(document["text"], decoded)
        self.assertGreater(document["timing"]["first_step_ms"], 0)
        plain = hearth("generate", self.model, *words)
        self.assertEqual(plain.stdout, document["text"] + "\n")
        self.assertIn("tokens/s", plain.stderr)
        self.assertEqual(hearth("generate", self.model, *words, "--quiet").stderr, "")

    def test_the_ways_to_give_a_prompt_agree(self):
        (self.root / "prompt.txt").write_text("the dog")
        ids = hearth("tokenizer", "encode", "-t", self.model, stdin="the dog").stdout.strip().replace(" ", ",")
        want = self.generate("-p", "the dog", "--max-tokens", "8")["ids"]
        for words in (["--file", self.root / "prompt.txt"], ["--ids", ids]):
            self.assertEqual(self.generate(*words, "--max-tokens", "8")["ids"], want)
        self.assertEqual(self.generate("-p", "-", "--max-tokens", "8", stdin="the dog")["ids"], want)

    def test_a_seed_fixes_the_draw(self):
        draw = ["-p", "the", "--temp", "1.5", "--max-tokens", "16", "--seed"]
        self.assertEqual(self.generate(*draw, "1")["ids"], self.generate(*draw, "1")["ids"])
        self.assertNotEqual(self.generate(*draw, "1")["ids"], self.generate(*draw, "2")["ids"])
        cut = self.generate(*draw, "1", "--top-k", "1")["ids"]
        self.assertEqual(cut, self.generate("-p", "the", "--max-tokens", "16")["ids"])

    def test_without_a_seed_a_fresh_one_is_drawn_and_said(self):
        draw = ["-p", "the", "--temp", "1.5", "--max-tokens", "16"]
        first, second = self.generate(*draw), self.generate(*draw)
        self.assertNotEqual(first["seed"], second["seed"])
        self.assertNotEqual(first["ids"], second["ids"])
        self.assertEqual(self.generate(*draw, "--seed", first["seed"])["ids"], first["ids"])
        run = hearth("generate", self.model, *draw, "--seed", "9", "--verbose")
        self.assertIn("seed: 9", run.stderr)
        self.assertNotIn("seed", self.generate("-p", "the", "--max-tokens", "2"))

    def test_flags_that_do_nothing_are_named(self):
        words = ["generate", self.model, "-p", "the", "--max-tokens", "2"]
        run = hearth(*words, "--top-p", "0.5", "--seed", "3")
        self.assertIn("without --temp the most likely token is taken each time: --top-p, --seed do nothing", run.stderr)
        for more in ([], ["--top-p", "0.5", "--temp", "0.5"], ["--seed", "3", "--temp", "0"]):
            self.assertNotIn("nothing", hearth(*words, *more).stderr)

    def test_stops(self):
        free = self.generate("-p", "the", "--max-tokens", "12")
        middle = re.search(r"[!-~]{2}", free["text"][1:]).group()
        stopped = self.generate("-p", "the", "--max-tokens", "12", "--stop", middle)
        self.assertEqual(stopped["finish"], "stop")
        self.assertEqual(stopped["text"], free["text"][:free["text"].index(middle)])
        self.config["eos_token_id"] = [299, free["ids"][3]]
        self.write_config()
        ended = self.generate("-p", "the", "--max-tokens", "12")
        self.assertEqual(ended["finish"], "stop")
        self.assertEqual(ended["ids"], free["ids"][:free["ids"].index(free["ids"][3]) + 1])

    def test_logprobs(self):
        tokens = self.generate("-p", "the", "--max-tokens", "3", "--logprobs", "4")["logprobs"]
        self.assertEqual([len(t["top"]) for t in tokens], [4, 4, 4])
        for token in tokens:
            self.assertEqual(token["top"][0]["id"], token["id"])
            self.assertAlmostEqual(token["top"][0]["logprob"], token["logprob"], 5)
        # A byte-level text is that of its tokens, spaces included.
        made = self.generate("-p", "the", "--max-tokens", "12", "--logprobs", "0")
        text = b"".join(token_bytes(t["token"]) for t in made["logprobs"])
        self.assertTrue(text.decode(errors="replace").startswith(made["text"]))
        everything = self.generate("-p", "the", "--max-tokens", "1", "--logprobs", self.VOCAB)["logprobs"][0]["top"]
        self.assertAlmostEqual(sum(math.exp(t["logprob"]) for t in everything), 1, 4)

    def test_chat_template_unless_raw(self):
        (self.model / "chat_template.jinja").write_text(TEMPLATE)
        for words, prompt in ((["-p", "hi"], "<user>hi<assistant>"), (["-p", "hi", "--raw"], "hi"),
                              (["-p", "hi", "--system", "be"], "<system>be<user>hi<assistant>")):
            got = self.generate(*words, "--max-tokens", "4")
            ids = hearth("tokenizer", "encode", "-t", self.model, "--no-special", stdin=prompt).stdout.split()
            self.assertEqual(got["prompt_tokens"], len(ids))
            self.assertEqual(got["ids"], self.generate("--ids", ",".join(ids), "--max-tokens", "4")["ids"])

    def test_kv_types(self):
        words = ["-p", "the cat", "--max-tokens", "4"]
        half = self.generate(*words)
        self.assertEqual(half["ids"], self.generate(*words, "--kv", "bf16")["ids"])
        wide = self.generate(*words, "--dtype", "fp32", "--kv", "fp32")
        small = self.generate(*words, "--kv", "int8")
        self.assertLess(small["kv_bytes"], half["kv_bytes"])
        self.assertLess(half["kv_bytes"], wide["kv_bytes"])
        mixed = self.generate(*words, "--kv", "fp32")  # a bf16 model's
        self.assertEqual(mixed["kv_bytes"], wide["kv_bytes"])


    def test_a_cut_text_ends_with_a_whole_character(self):
        tokens = json.loads((self.model / "tokenizer.json").read_text())["model"]["vocab"]
        half = tokens["\u00c3"]  # the byte 0xC3, as byte-level tokenizers write it
        made = self.generate("-p", "the", "--max-tokens", "3", "--logit-bias", f"{half}=1000")
        self.assertEqual(made["ids"], [half] * 3)
        # Two of them can never become a character; the third might have.
        self.assertEqual(made["text"], "\ufffd\ufffd")

    def test_one_document_whatever_happens(self):
        self.config.update(max_position_embeddings=1 << 16, eos_token_id=None)
        self.write_config()
        run = subprocess.Popen([HEARTH, "generate", str(self.model), "-p", "the", "--max-tokens", "60000", "--kv-budget", "64",
                                "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        interrupt_when_asked(self, run)
        out, err = run.communicate(timeout=120)
        self.assertEqual(run.returncode, 130, err)
        self.assertEqual(json.loads(out)["finish"], "cancelled")
        self.assertEqual(err, b"error: interrupted\n")
        with open("/dev/full", "w") as full:
            for words in (["-p", "the", "--max-tokens", "2"], ["-p", "the", "--temp", "-1"]):
                run = subprocess.run([HEARTH, "generate", str(self.model), *words, "--json"], stdout=full,
                                     stderr=subprocess.PIPE, text=True)
                self.assertNotEqual(run.returncode, 0)
                self.assertTrue(run.stderr.startswith("error: "), run.stderr)


class BadInput(Folder):
    def test_numbers(self):
        for words, says in (
                (["--seed", "-1"], "--seed must be a whole number from 0 to 18446744073709551615, got '-1'"),
                (["--seed", 1 << 64], "--seed must be a whole number from 0"), (["--seed", "x"], "--seed must be a whole number"),
                (["--temp", ""], "--temp must be a number, got ''"), (["--temp", "nan"], "--temp must be a number"),
                (["--max-tokens", ""], "--max-tokens must be a whole number, got ''"),
                (["--max-tokens", "1.5"], "--max-tokens must be a whole number"),
                (["--max-tokens", "0x10"], "--max-tokens must be a whole number"),
                (["--max-tokens", "99999999999"], "--max-tokens must be from 1 to 2147483647, got 99999999999"),
                (["--logprobs", "-1"], "--logprobs must be from 0"), (["--top-k", "-1"], "--top-k must be from 0"),
                (["--top-p", "2"], "--top-p must be in (0, 1], got 2"), (["--repeat-penalty", "0"], "--repeat-penalty must be"),
                (["--temp", "-1"], "--temp must be 0 or more, got -1"), (["--stop", ""], "--stop must be some text"),
                (["--stop", "x" * 1025], "--stop must have at most 1024 bytes, got 1025"),
                (["--logit-bias", "5=nan"], "--logit-bias must be ID=VALUE"), (["--threads", "4 "], "--threads must be a whole")):
            self.refused("generate", self.model, "-p", "a", *words, says=says)
        self.assertEqual(len(self.generate("-p", "a", "--max-tokens", "010")["ids"]), 10)
        self.assertEqual(len(self.generate("-p", "a", "--max-tokens", "+3")["ids"]), 3)

    def test_a_list_takes_one_word_each_time(self):
        free = self.generate("-p", "the", "--max-tokens", "12")
        word = re.search(r"[!-~]{2}", free["text"][1:]).group()
        run = hearth("generate", "--stop", word, self.model, "-p", "the", "--max-tokens", "12", "--quiet")
        self.assertEqual(run.stdout, free["text"][:free["text"].index(word)] + "\n")
        # Brackets are text.
        for stop in (f"[{word}]", f"[{word},{word}]"):
            self.assertEqual(self.generate("-p", "the", "--max-tokens", "12", "--stop", stop)["text"], free["text"])

    def test_wrong_flags_do_not_wait_for_the_weights(self):
        name = "model.layers.0.mlp.down_proj.weight"
        begin = self.header[name]["data_offsets"][0]
        nan = {"F32": struct.pack("<f", math.nan), "BF16": b"\xc0\x7f", "F16": b"\x00\x7e"}[self.header[name]["dtype"]]
        self.data[begin:begin + len(nan)] = nan
        self.write_weights()
        self.refused("generate", self.model, "-p", "a", says="finite")
        (self.root / "s.json").write_text("{")
        (self.root / "not.json").write_text('{"not": {}}')
        (self.root / "x.gbnf").write_text("root ::= x")
        for words, says in (
                (["-p", "a", "--temp", "-1"], "--temp"), (["-p", "a", "--stop", ""], "--stop"),
                (["--file", "/nonexistent"], "there is no prompt at '/nonexistent'"),
                (["--file", self.root], "the prompt must be a file"), (["--ids", "1,x"], "--ids"),
                (["--ids", "1,999"], "error: --ids must be tokens from 0 to 299, got 999"),
                (["-p", "a", "--prefix-dir", "/proc/x"], "--prefix-dir"), (["-p", ""], "the prompt is empty"),
                (["-p", "a", "--schema", self.root / "s.json"], "s.json:1:2"),
                (["-p", "a", "--schema", self.root / "not.json"], "not.json: the keyword 'not' is not supported"),
                (["-p", "a", "--grammar", self.root / "x.gbnf"], "x.gbnf: rule 'x' must be defined"),
                (["-p", "a", "--logit-bias", "999=1"], "error: --logit-bias must name tokens from 0 to 299, got 999"),
                (["-p", "a", "--logit-bias", "5=1", "--logit-bias", "5=2"], "--logit-bias must name each token once, got 5 twice"),
                (["-p", "a " * 9999], "error: the prompt must leave room"),
                (["-p", "the cat " * 4000], "the model's context of"), (["-p", "a", "--system", "b"], "no chat template"),
                (["-p", "a", "--draft", self.root / "none"], "none"), (["-p", "a", "--adapter", self.root / "none"], "none"),
                (["-p", "a", "-t", self.root / "none"], "there is no tokenizer at"),
                (["-p", "a", "--tools", self.root / "none"], "there is no list of tools at")):
            self.refused("generate", self.model, *words, says=says)
        for words, says in ((["--temp", "-1"], "--temp"), (["--stop", ""], "--stop"), (["--regex", "("], "error: --regex: the group must be closed"),
                            (["--system", "x"], "chat template"), (["--load", self.root / "none"], "no conversation at"),
                            (["--load", "-"], "--load needs a file"), (["--raw", "--system", "x"], "--raw leaves out")):
            self.refused("chat", self.model, *words, says=says)

    def test_what_is_out_of_reach(self):
        loop = self.root / "loop"
        loop.symlink_to(loop)
        self.refused("generate", loop, "-p", "a", says=["the model at", "is out of reach", "symbolic links"])
        self.refused("generate", "x" * 300, "-p", "a", says="is out of reach")
        self.refused("generate", self.model, "--file", loop, says="the prompt at")
        run = self.refused("generate", "some-org/some-model", "-p", "a", says="no such model folder")
        self.assertIn("hf:some-org/some-model", run.stderr)
        self.assertNotIn("hf:", hearth("generate", "./some-model", "-p", "a").stderr)
        shut = self.root / "shut"
        shutil.copytree(self.model, shut)
        shut.chmod(0)
        self.addCleanup(shut.chmod, 0o700)
        if os.geteuid() != 0:
            self.refused("generate", shut, "-p", "a", says="is out of reach: Permission denied")

    def test_pipes(self):
        read, write = os.pipe()
        os.write(write, b"the dog\n")
        os.close(write)
        words = ["generate", self.model, "--file", f"/dev/fd/{read}", "--max-tokens", "4", "--json"]
        run = subprocess.run([HEARTH, *map(str, words)], capture_output=True, pass_fds=[read])
        os.close(read)
        want = self.generate("-p", "the dog", "--max-tokens", "4")["ids"]
        self.assertEqual(json.loads(run.stdout)["ids"], want)
        # The end of the last line is none of the prompt.
        self.assertEqual(self.generate("-p", "-", "--max-tokens", "4", stdin="the dog\r\n")["ids"], want)
        # A pipe in a model's folder is not waited at.
        (self.model / "config.json").unlink()
        os.mkfifo(self.model / "config.json")
        self.refused("generate", self.model, "-p", "a", says="config.json: must be a regular file")

    def test_prompts(self):
        self.refused("generate", self.model, says="give the prompt by one of")
        self.refused("generate", self.model, "-p", "a", "--ids", "1", says="give the prompt by one of")
        self.refused("generate", self.model, "-p", "", says="the prompt is empty")
        self.refused("generate", self.model, "--ids", "1,x", says="--ids must be numbers")
        self.refused("generate", self.model, "--ids", self.VOCAB, says=["from 0 to 299", "300"])
        self.refused("generate", self.model, "-p", "the cat " * 4000, says="the model's context of")
        self.refused("generate", self.model, "-p", "a", "--max-tokens", "0", says="from 1 to")
        self.refused("generate", self.model, "-p", "a", "--raw", "--system", "x", says="--system")

    def test_no_tokenizer(self):
        tokenizer = self.root / "tokenizer.json"
        shutil.move(self.model / "tokenizer.json", tokenizer)
        run = self.refused("generate", self.model, "-p", "a", says="neither tokenizer.json nor tokenizer.model")
        self.assertIn("--ids", run.stderr)
        self.assertEqual(hearth("generate", self.model, "-t", tokenizer, "-p", "a", "--max-tokens", "2").returncode, 0)
        ids = hearth("generate", self.model, "--ids", "1,2", "--max-tokens", "3")
        self.assertEqual(len(ids.stdout.split()), 3)

    def test_not_a_model(self):
        empty = self.root / "empty"
        empty.mkdir()
        self.refused("generate", empty, "-p", "a", says=[str(empty), "config.json"])
        self.refused("generate", self.root / "nowhere", "-p", "a", says="no such model folder or .gguf file")
        (self.root / "text.gguf").write_text("this is not a model")
        self.refused("generate", self.root / "text.gguf", "-p", "a", says="text.gguf")

    def test_config(self):
        for key, value, says in (
                ("model_type", "frobnicator", ["frobnicator", "llama", "qwen2", "gpt2"]),
                ("attention_sinks_of_doom", 3, ["attention_sinks_of_doom", "config.json"]),
                ("hidden_size", "wide", ["hidden_size", "config.json"]),
                ("hidden_act", "tanhh", ["config.json: 'hidden_act' the activation must be one of", "tanhh"]),
                ("rope_parameters", {"rope_type": "default", "rope_theta": 0}, ["rope_theta", "must be above 1", "config.json"]),
                ("quantization_config", {"quant_method": "gptq", "bits": 4}, ["quantization_config", "gptq", "config.json"]),
                ("vocab_size", 200, ["the tokenizer has ids up to", "200 rows"]),
                ("eos_token_id", 9999, ["config.json", "'eos_token_id'", "9999"]),
                ("eos_token_id", [299, 300], ["config.json", "'eos_token_id'", "has 300, got 300"])):
            before = dict(self.config)
            self.config[key] = value
            self.write_config()
            for command in (["generate", self.model, "-p", "a"],
                            ["eval", "ppl", self.model, "--text", self.root / "text.txt"]):
                self.refused(*command, says=says)
            self.config = before
            self.write_config()
        (self.model / "generation_config.json").write_text('{"eos_token_id": 99999}')
        self.refused("generate", self.model, "-p", "a", says=["generation_config.json", "'eos_token_id'", "99999"])

    def test_weights(self):
        good = dict(self.header), bytes(self.data)
        name = "model.layers.0.mlp.down_proj.weight"
        rows, cols = self.header[name]["shape"]
        self.header[name]["shape"] = [rows * 2, cols // 2]
        self.write_weights()
        self.refused("generate", self.model, "-p", "a", says=[name, "must have shape"])
        self.header[name]["shape"] = [rows, cols]
        begin = self.header[name]["data_offsets"][0]
        kind = self.header[name]["dtype"]
        nan = {"F32": struct.pack("<f", math.nan), "BF16": b"\xc0\x7f", "F16": b"\x00\x7e"}[kind]
        self.data[begin:begin + len(nan)] = nan
        self.write_weights()
        self.refused("generate", self.model, "-p", "a", says=[name, "finite"])
        self.header, self.data = dict(good[0]), bytearray(good[1])
        self.header["another.weight"] = self.header.pop(name)
        self.write_weights()
        self.refused("generate", self.model, "-p", "a", says=name)

    def test_a_missing_shard(self):
        (self.model / "model.safetensors").rename(self.model / "model-00001-of-00002.safetensors")
        files = {name: "model-00001-of-00002.safetensors" for name in self.header}
        files["model.norm.weight"] = "model-00002-of-00002.safetensors"
        (self.model / "model.safetensors.index.json").write_text(json.dumps({"weight_map": files}))
        run = hearth("generate", self.model, "-p", "a")
        self.assertIn(run.returncode, (1, 2))
        self.assertIn("model-00002-of-00002.safetensors", run.stderr.splitlines()[0])


class EvalPpl(Folder):
    def ppl(self, *words):
        run = hearth("eval", "ppl", self.model, "--text", self.root / "text.txt", *words, "--json")
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        document = json.loads(run.stdout)
        self.assertEqual(document["schema"], "hearth.eval.ppl/1")
        self.assertAlmostEqual(document["ppl"], math.exp(document["nll"]), 4)
        self.assertGreater(document["stderr"], 0)
        return document

    def test_every_token_is_scored_once(self):
        count = len(hearth("tokenizer", "encode", "-t", self.model, stdin=STORY).stdout.split())
        for stride in (1, 5, 31):
            self.assertEqual(self.ppl("--ctx", 32, "--stride", stride, "--windows", 0)["tokens"], count - 1)

    def test_windows_fit_the_context(self):
        for context, window in ((48, 48), (1 << 12, 512)):
            self.config["max_position_embeddings"] = context
            self.write_config()
            self.assertEqual(self.ppl()["ctx"], window)

    def test_batches_change_nothing(self):
        one, many = (self.ppl("--ctx", 32, "--batch", n) for n in (1, 7))
        self.assertAlmostEqual(one["nll"], many["nll"], 5)

    def test_llamacpp_counts(self):
        document = self.ppl("--ctx", 32, "--method", "llamacpp", "--windows", 3)
        self.assertEqual((document["windows"], document["tokens"]), (3, 3 * 15))
        plain = hearth("eval", "ppl", self.model, "--text", self.root / "text.txt", "--ctx", 32,
                       "--method", "llamacpp", "--windows", 3)
        self.assertRegex(plain.stdout, r"^perplexity \d+\.\d+ ± \d+\.\d+ ")

    def test_bad_input(self):
        text = self.root / "text.txt"
        eval_ppl = ["eval", "ppl", self.model, "--text"]
        (self.root / "empty.txt").write_text("")
        self.refused(*eval_ppl, self.root / "empty.txt", says="no text")
        self.refused(*eval_ppl, self.root / "absent.txt", says="absent.txt")
        self.refused(*eval_ppl, text, "--ctx", 1 << 20, says="the model's context of")
        self.refused(*eval_ppl, text, "--ctx", 1, says="--ctx must be 2 or more")
        self.refused(*eval_ppl, text, "--ctx", 32, "--stride", 32, says="the stride must be from 1 to 31")
        self.refused(*eval_ppl, text, "--stride", 4, "--method", "llamacpp", says="--stride")
        (self.root / "short.txt").write_text("the cat")
        self.refused(*eval_ppl, self.root / "short.txt", "--ctx", 32, "--method", "llamacpp", says="2 windows of 32")


if __name__ == "__main__":
    unittest.main()
