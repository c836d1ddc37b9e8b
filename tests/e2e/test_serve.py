"""hearth serve over loopback: the known text, streamed and not, keys, limits, signals; and bad flags in one clear line."""
import base64
import contextlib
import http.client
import json
import os
import pathlib
import resource
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

SOURCE = pathlib.Path(os.environ["HEARTH_SOURCE"])
sys.path.insert(0, str(SOURCE / "tools"))
sys.path.insert(0, str(SOURCE / "tests/e2e"))
import serve_process  # noqa: E402
import test_generate  # noqa: E402

HEARTH = os.environ["HEARTH_BINARY"]
STORIES = SOURCE / "../shared/data/weights/stories260K-hf"
KEY = "a-key-for-tests-0123456789"


def ask(server, method, path, body=None, key=None, host="localhost"):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
    headers = {"Host": host, "Content-Type": "application/json"}
    if key:
        headers["Authorization"] = "Bearer " + key
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    answer = connection.getresponse()
    raw = answer.read().decode()
    connection.close()
    return answer.status, raw


def post(server, path, **body):
    status, raw = ask(server, "POST", path, {"model": server.model, **body})
    return status, json.loads(raw)


def events(raw):
    lines = [line[6:] for line in raw.split("\n\n") if line.startswith("data: ")]
    assert lines[-1] == "[DONE]", raw[-300:]
    return [json.loads(line) for line in lines[:-1]]


MISTRAL_TEMPLATE = """{%- for m in messages %}{% if m.role == 'user' %}[INST] {{ m.content }}[/INST]
{%- elif m.tool_calls %}[TOOL_CALLS] [
{%- for c in m.tool_calls %}{% if c.id | length != 9 %}{{ raise_exception('ids must have nine letters') }}{% endif %}
{{- c.function | tojson }}{% endfor %}]</s>
{%- elif m.role == 'tool' %}
{%- if m.tool_call_id | length != 9 %}{{ raise_exception('ids must have nine letters') }}{% endif %}[TOOL_RESULTS] {{ m.content }}
{%- endif %}{% endfor %}{% if tools %}[AVAILABLE_TOOLS] {{ tools | tojson }}{% endif %}"""


@contextlib.contextmanager
def slow_stream(server):
    """A client in the middle of an answer that is too long to end before it is read."""
    body = json.dumps({"model": server.model, "prompt": "the", "max_tokens": 900, "stream": True, "n": 12, "logprobs": 64,
                       "seed": 1, "logit_bias": {"299": -100}})
    with socket.socket() as client:
        # Else the system's own buffers would hold most of it.
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        client.settimeout(120)
        client.connect(("127.0.0.1", server.port))
        client.sendall(f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                       f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        client.recv(4096)
        yield client


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class KnownText(unittest.TestCase):
    """stories260K's greedy text, as transformers has it."""

    @classmethod
    def setUpClass(cls):
        if not STORIES.is_dir():
            raise unittest.SkipTest("../shared/data/weights/stories260K-hf is not there")
        golden = json.loads((SOURCE / "tests/golden/real_models.json").read_text())
        cls.want = golden["models"]["stories260K-hf"]["greedy"]
        cls.server = serve_process.Server(STORIES)
        cls.addClassCleanup(cls.server.__exit__)

    def body(self, **more):
        return {"prompt": self.want["prompt_ids"], "temperature": 0, "max_tokens": len(self.want["ids"]), **more}

    def test_whole(self):
        status, answer = post(self.server, "/v1/completions", **self.body())
        self.assertEqual(status, 200, answer)
        self.assertEqual(answer["choices"][0]["text"].strip(), self.want["text"].strip())
        self.assertEqual(answer["choices"][0]["finish_reason"], "length")
        self.assertEqual(answer["usage"]["completion_tokens"], len(self.want["ids"]))

    def test_streamed(self):
        status, raw = ask(self.server, "POST", "/v1/completions", {"model": self.server.model, **self.body(stream=True)})
        self.assertEqual(status, 200, raw)
        text = "".join(c["text"] for e in events(raw) for c in e["choices"])
        self.assertEqual(text.strip(), self.want["text"].strip())

    def test_log_probabilities_of_a_prompt(self):
        ids = self.want["prompt_ids"] + self.want["ids"]
        _, answer = post(self.server, "/v1/completions", prompt=ids, echo=True, max_tokens=0, logprobs=2,
                         return_token_ids=True)
        probs = answer["choices"][0]["logprobs"]
        self.assertEqual(probs["token_ids"], ids)
        made = probs["token_logprobs"][len(self.want["prompt_ids"]):]
        self.assertAlmostEqual(-sum(made) / len(made), self.want["mean_nll"], delta=2e-3)
        # Every token of a greedy text is the first of its alternatives.
        best = [pairs[0][0] for pairs in probs["top_token_ids"][len(self.want["prompt_ids"]):]]
        self.assertEqual(best, self.want["ids"])

    def test_many_at_once_agree(self):
        _, answer = post(self.server, "/v1/completions", **self.body(max_tokens=60, n=8))
        texts = {c["text"] for c in answer["choices"]}
        self.assertEqual(len(texts), 1)
        self.assertTrue(self.want["text"].strip().startswith(texts.pop().strip()))

    def test_a_chat_needs_a_template(self):
        status, answer = post(self.server, "/v1/chat/completions", messages=[{"role": "user", "content": "hi"}])
        self.assertEqual(status, 400)
        self.assertIn("chat template", answer["error"]["message"])


class Served(test_generate.Folder):
    """A tiny model with a template, written by the test."""

    def setUp(self):
        super().setUp()
        (self.model / "chat_template.jinja").write_text(test_generate.TEMPLATE)
        self.config["max_position_embeddings"] = 1024
        self.write_config()

    def serve(self, *flags, **how):
        server = serve_process.Server(self.model, *flags, **how)
        self.addCleanup(server.__exit__)
        return server

    def test_a_chat(self):
        server = self.serve("--name", "tiny", "--batch-invariant")
        self.assertEqual(server.document["schema"], "hearth.serve/1")
        self.assertEqual(server.document["models"], ["tiny"])
        chat = {"messages": [{"role": "user", "content": "the cat sat"}], "temperature": 0, "max_tokens": 12}
        status, whole = post(server, "/v1/chat/completions", **chat)
        self.assertEqual(status, 200, whole)
        _, raw = ask(server, "POST", "/v1/chat/completions",
                     {"model": "tiny", **chat, "stream": True, "stream_options": {"include_usage": True}})
        seen = events(raw)
        text = "".join(c["delta"].get("content", "") for e in seen for c in e["choices"])
        self.assertEqual(text, whole["choices"][0]["message"]["content"])
        self.assertEqual(seen[-1]["usage"]["total_tokens"], whole["usage"]["total_tokens"])
        self.assertIn("hearth_made_tokens_total 24", ask(server, "GET", "/metrics")[1])
        self.assertEqual(ask(server, "GET", "/")[0], 200)
        self.assertEqual(ask(server, "GET", "/", host="evil.example")[0], 403)
        self.assertEqual(ask(server, "GET", "/../../etc/passwd")[0], 404)

    def test_json_is_held_to_its_schema(self):
        server = self.serve()
        schema = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 0, "maximum": 99}},
                  "required": ["a"], "additionalProperties": False}
        form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
        for seed in range(5):
            status, answer = post(server, "/v1/chat/completions", messages=[{"role": "user", "content": "go"}],
                                  response_format=form, max_tokens=60, seed=seed, temperature=1.5)
            self.assertEqual(status, 200, answer)
            choice = answer["choices"][0]
            if choice["finish_reason"] == "stop":
                self.assertIsInstance(json.loads(choice["message"]["content"])["a"], int)

    def test_tools(self):
        template = self.root / "tools.jinja"
        template.write_text(serve_process.TOOL_TEMPLATE)
        server = self.serve("--chat-template", template)
        tool = {"type": "function", "function": {"name": "add", "parameters": {
            "type": "object", "properties": {"a": {"type": "integer", "minimum": 0, "maximum": 9}},
            "required": ["a"], "additionalProperties": False}}}
        body = {"messages": [{"role": "user", "content": "go"}], "tools": [tool], "tool_choice": "required",
                "parallel_tool_calls": False, "max_tokens": 150, "seed": 3, "temperature": 1}
        status, answer = post(server, "/v1/chat/completions", **body)
        self.assertEqual(status, 200, answer)
        choice = answer["choices"][0]
        self.assertEqual(choice["finish_reason"], "tool_calls", answer)
        calls = choice["message"]["tool_calls"]
        self.assertEqual([c["function"]["name"] for c in calls], ["add"])
        self.assertIn(json.loads(calls[0]["function"]["arguments"])["a"], range(10))
        _, raw = ask(server, "POST", "/v1/chat/completions", {"model": server.model, **body, "stream": True})
        pieces = [c for e in events(raw) for c in e["choices"]]
        streamed = [t for c in pieces for t in c["delta"].get("tool_calls", [])]
        self.assertEqual([t["function"].get("name") for t in streamed], ["add"] + [None] * (len(streamed) - 1))
        told = json.loads("".join(t["function"]["arguments"] for t in streamed))
        self.assertEqual(told, json.loads(calls[0]["function"]["arguments"]))
        self.assertEqual(pieces[-1]["finish_reason"], "tool_calls")
        body.pop("tool_choice")
        self.assertEqual(post(server, "/v1/chat/completions", **body)[0], 200)

    def test_a_call_can_be_answered(self):
        """Mistral's template takes ids of nine letters and digits, and raises for others."""
        template = self.root / "mistral.jinja"
        template.write_text(MISTRAL_TEMPLATE)
        server = self.serve("--chat-template", template)
        tool = {"type": "function", "function": {"name": "add", "parameters": {
            "type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"], "additionalProperties": False}}}
        body = {"messages": [{"role": "user", "content": "go"}], "tools": [tool], "tool_choice": "required",
                "max_tokens": 200, "seed": 3}
        status, answer = post(server, "/v1/chat/completions", parallel_tool_calls=False, **body)
        self.assertEqual(status, 200, answer)
        message = answer["choices"][0]["message"]
        calls = [call["id"] for call in message["tool_calls"]]
        body["messages"] += [message] + [{"role": "tool", "tool_call_id": i, "content": "3"} for i in calls]
        body.pop("tool_choice")
        status, answer = post(server, "/v1/chat/completions", **body)
        self.assertEqual(status, 200, answer)

    def test_a_cut_call_is_not_shown(self):
        template = self.root / "tools.jinja"
        template.write_text(serve_process.TOOL_TEMPLATE)
        server = self.serve("--chat-template", template)
        tool = {"type": "function", "function": {"name": "add"}}
        _, answer = post(server, "/v1/chat/completions", messages=[{"role": "user", "content": "go"}], tools=[tool],
                         tool_choice="required", max_tokens=25, seed=3)
        choice = answer["choices"][0]
        self.assertEqual((choice["finish_reason"], choice["message"]["content"]), ("length", ""), answer)

    def test_a_template_of_ones_own_has_the_models_tokens(self):
        (self.model / "tokenizer_config.json").write_text(json.dumps({"bos_token": "<s>", "eos_token": "</s>"}))
        template = self.root / "own.jinja"
        template.write_text("{{ bos_token }}{% for m in messages %}{{ m.content + eos_token }}{% endfor %}")
        server = self.serve("--chat-template", template)
        chat = {"messages": [{"role": "user", "content": "the"}], "max_tokens": 1}
        status, answer = post(server, "/v1/chat/completions", **chat)
        self.assertEqual(status, 200, answer)
        template.write_text("{{ raise_exception('no') if messages|length > 1 }}{{ bos_token + nothing.x }}")
        server = self.serve("--chat-template", template)
        status, answer = post(server, "/v1/chat/completions", **chat)
        self.assertEqual(status, 400)
        self.assertNotIn(str(self.root), json.dumps(answer))

    def test_strict_tools_are_held_to_their_schemas_or_refused(self):
        template = self.root / "tools.jinja"
        template.write_text(serve_process.TOOL_TEMPLATE)
        server = self.serve("--chat-template", template)
        tool = {"type": "function", "function": {"name": "add", "strict": True, "parameters": {"type": "banana"}}}
        body = {"messages": [{"role": "user", "content": "go"}], "tools": [tool], "max_tokens": 2}
        status, answer = post(server, "/v1/chat/completions", **body)
        self.assertEqual((status, answer["error"]["param"]), (400, "tools"), answer)
        tool["function"]["parameters"] = {"type": "object"}
        self.assertEqual(post(server, "/v1/chat/completions", **body)[0], 200)

    def test_a_grammar_that_takes_too_long_ends_its_own_request(self):
        server = self.serve()
        grammar = 'root ::= a\na ::= [a-z ] (a b | a c | b a | "")\nb ::= [a-z ] (b c | c | "")\nc ::= [a-z ] (c a | "")'
        body = {"prompt": "the", "max_tokens": 900, "seed": 1}
        status, answer = post(server, "/v1/completions", response_format={"type": "gbnf", "grammar": grammar},
                              logit_bias={"299": -100}, **body)
        self.assertEqual(status, 400, answer)
        self.assertIn("ambiguous", answer["error"]["message"])
        self.assertEqual(post(server, "/v1/completions", **body)[0], 200)

    def test_an_adapter_is_the_models_own_or_has_a_name(self):
        folder = SOURCE / "tests/golden/adapters/lora"
        asked = {"prompt": "the cat", "max_tokens": 0, "echo": True, "logprobs": 0}
        probs = lambda server, **more: post(server, "/v1/completions", **asked, **more)[1]["choices"][0]["logprobs"]["token_logprobs"][1:]
        own, named = self.serve("--adapter", folder), self.serve("--adapter", f"law={folder}")
        self.assertEqual(own.document["models"], ["model"])
        self.assertEqual(named.document["models"], ["model", "law"])
        plain, law = probs(named), probs(named, model="law")
        self.assertGreater(max(abs(a - b) for a, b in zip(plain, law)), 1e-2)
        self.assertLess(max(abs(a - b) for a, b in zip(probs(own), law)), 5e-2)

    def test_verbose_says_what_was_asked_and_no_texts_or_keys(self):
        keys = self.root / "keys"
        keys.write_text(KEY + "\n")
        server = self.serve("--verbose", "--api-key-file", keys)
        body = {"model": server.model, "prompt": "the sat on", "max_tokens": 3, "logit_bias": {"299": -100}}
        self.assertEqual(ask(server, "POST", "/v1/completions", body, key=KEY)[0], 200)
        self.assertEqual(ask(server, "POST", "/v1/completions", body, key="a-wrong-key-0123456789")[0], 401)
        self.assertEqual(ask(server, "GET", "/health")[0], 200)
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(60)
        notes = server.notes()
        self.assertRegex(notes, r"POST /v1/completions 200 \d+\+3 tokens \d+ ms")
        self.assertRegex(notes, r"POST /v1/completions 401")
        self.assertRegex(notes, r"GET /health 200")
        self.assertIn("key that is not known", notes)
        for secret in ("the sat on", KEY, "a-wrong-key"):
            self.assertNotIn(secret, notes)

    def test_a_template_without_tools_is_told_of_them(self):
        tool = {"type": "function", "function": {"name": "add", "parameters": {
            "type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"], "additionalProperties": False}}}
        body = {"messages": [{"role": "user", "content": "go"}], "tools": [tool], "tool_choice": "required",
                "parallel_tool_calls": False, "max_tokens": 200, "seed": 3}
        server = self.serve()
        status, answer = post(server, "/v1/chat/completions", **body)
        self.assertEqual(status, 200, answer)
        message = answer["choices"][0]["message"]
        call = message["tool_calls"][0]
        self.assertIn(json.loads(call["function"]["arguments"]), ({"a": 1}, {"a": 2}))
        back = {**body, "tool_choice": "auto", "messages": [
            *body["messages"], {**message, "annotations": []},
            {"role": "tool", "tool_call_id": call["id"], "content": "3"}]}
        status, answer = post(server, "/v1/chat/completions", **back)
        self.assertEqual(status, 200, answer)
        strict = self.serve("--strict-requests")
        status, answer = post(strict, "/v1/chat/completions", **body)
        self.assertEqual((status, answer["error"]["param"]), (400, "tools"))

    def test_arguments_of_a_streamed_call_come_as_they_are_made(self):
        template = self.root / "tools.jinja"
        template.write_text(serve_process.TOOL_TEMPLATE)
        server = self.serve("--chat-template", template)
        tool = {"type": "function", "function": {"name": "add", "parameters": {
            "type": "object", "properties": {"a": {"type": "string", "minLength": 30, "maxLength": 40}},
            "required": ["a"], "additionalProperties": False}}}
        _, raw = ask(server, "POST", "/v1/chat/completions", {
            "model": server.model, "messages": [{"role": "user", "content": "go"}], "tools": [tool], "stream": True,
            "tool_choice": "required", "parallel_tool_calls": False, "max_tokens": 300, "seed": 3})
        deltas = [c for e in events(raw) for choice in e["choices"] for c in choice["delta"].get("tool_calls", [])]
        self.assertEqual({c["index"] for c in deltas}, {0})
        self.assertEqual(deltas[0]["function"]["name"], "add")
        self.assertGreater(len(deltas), 5)
        arguments = "".join(c["function"]["arguments"] for c in deltas)
        self.assertGreaterEqual(len(json.loads(arguments)["a"]), 30)
        self.assertEqual(events(raw)[-1]["choices"][0]["finish_reason"], "tool_calls")

    def test_a_form_or_a_call(self):
        template = self.root / "tools.jinja"
        template.write_text(serve_process.TOOL_TEMPLATE)
        server = self.serve("--chat-template", template)
        tool = {"type": "function", "function": {"name": "add", "strict": True, "parameters": {
            "type": "object", "properties": {"a": {"const": 1}}, "required": ["a"], "additionalProperties": False}}}
        form = {"type": "json_schema", "json_schema": {"name": "city", "schema": {
            "type": "object", "properties": {"city": {"const": "Rome"}}, "required": ["city"], "additionalProperties": False}}}
        made = set()
        for seed in range(8):
            status, answer = post(server, "/v1/chat/completions", messages=[{"role": "user", "content": "go"}], tools=[tool],
                                  response_format=form, seed=seed, max_tokens=300, parallel_tool_calls=False)
            self.assertEqual(status, 200, answer)
            message = answer["choices"][0]["message"]
            if message.get("tool_calls"):
                made.add("call")
                self.assertEqual(json.loads(message["tool_calls"][0]["function"]["arguments"]), {"a": 1})
            else:
                made.add("text")
                self.assertEqual(json.loads(message["content"]), {"city": "Rome"})
        self.assertTrue(made)

    def test_embeddings(self):
        server = self.serve()
        status, both = post(server, "/v1/embeddings", input=["the cat sat", "on"])
        self.assertEqual(status, 200, both)
        vectors = [d["embedding"] for d in both["data"]]
        for vector in vectors:
            self.assertAlmostEqual(sum(x * x for x in vector), 1, places=4)
        _, one = post(server, "/v1/embeddings", input="the cat sat", encoding_format="base64")
        bytes_ = base64.b64decode(one["data"][0]["embedding"])
        again = struct.unpack(f"<{len(bytes_) // 4}f", bytes_)
        self.assertEqual(len(again), len(vectors[0]))
        self.assertLess(max(abs(a - b) for a, b in zip(again, vectors[0])), 1e-2)
        _, few = post(server, "/v1/embeddings", input="the cat sat", dimensions=4)
        self.assertEqual(len(few["data"][0]["embedding"]), 4)
        last = self.serve("--pooling", "last")
        _, other = post(last, "/v1/embeddings", input="the cat sat")
        self.assertGreater(max(abs(a - b) for a, b in zip(other["data"][0]["embedding"], vectors[0])), 1e-2)
        _, alone = post(last, "/v1/embeddings", input="the cat sat on")
        self.assertEqual(len(alone["data"][0]["embedding"]), len(vectors[0]))
        status, answer = post(server, "/v1/embeddings", input="the " * 5000)
        self.assertEqual((status, answer["error"]["code"]), (400, "context_length_exceeded"), answer)
        _, models = ask(server, "GET", "/v1/models")
        self.assertEqual(json.loads(models)["data"][0]["embedding_length"], len(vectors[0]))

    def test_responses_say_what_chats_say(self):
        server = self.serve()
        options = {"temperature": 0}
        _, chat = post(server, "/v1/chat/completions", messages=[{"role": "user", "content": "the cat"}], max_tokens=12, **options)
        status, whole = post(server, "/v1/responses", input="the cat", max_output_tokens=12, **options)
        self.assertEqual(status, 200, whole)
        text = whole["output"][0]["content"][0]["text"]
        self.assertEqual(text, chat["choices"][0]["message"]["content"])
        _, raw = ask(server, "POST", "/v1/responses", {"model": server.model, "input": "the cat", "max_output_tokens": 12,
                                                       "stream": True, **options})
        told = [json.loads(line[6:]) for line in raw.splitlines() if line.startswith("data: ")]
        self.assertEqual("".join(e["delta"] for e in told if e["type"] == "response.output_text.delta"), text)
        self.assertEqual([e["sequence_number"] for e in told], list(range(len(told))))
        status, answer = post(server, "/v1/responses", input="the", previous_response_id="resp_1")
        self.assertEqual((status, answer["error"]["param"]), (400, "previous_response_id"))

    def test_keys(self):
        keys = self.root / "keys"
        keys.write_text(KEY + "\n")
        server = self.serve("--api-key-file", keys, "--verbose")
        self.assertEqual(ask(server, "GET", "/v1/models")[0], 401)
        self.assertEqual(ask(server, "GET", "/v1/models", key="wrong-key-wrong-key")[0], 401)
        self.assertEqual(ask(server, "GET", "/v1/models", key=KEY)[0], 200)
        self.assertNotIn(KEY, server.notes())

    def test_a_key_finds_only_its_own_prompts(self):
        """In memory, and on disk after a new start."""
        other = "another-key-for-tests-0123"
        keys = self.root / "keys"
        keys.write_text(f"{KEY}\n{other}\n")
        flags = ("--api-key-file", keys, "--prefix-dir", self.root / "kept")
        prompt = "the cat sat on the mat and the dog sat on the log " * 12

        def cached(server, key):
            body = {"model": server.model, "prompt": prompt, "max_tokens": 1, "temperature": 0}
            status, raw = ask(server, "POST", "/v1/completions", body, key=key)
            self.assertEqual(status, 200, raw)
            return json.loads(raw)["usage"]["prompt_tokens_details"]["cached_tokens"]

        first = self.serve(*flags)
        self.assertEqual([cached(first, k) for k in (KEY, other)], [0, 0])
        self.assertGreater(cached(first, KEY), 32)
        first.stop()
        second = self.serve(*flags)
        self.assertGreater(cached(second, KEY), 32)
        third_key = "a-third-key-for-tests-0123"
        second.stop()
        keys.write_text(third_key + "\n")
        self.assertEqual(cached(self.serve(*flags), third_key), 0)

    def test_a_key_has_its_share(self):
        keys = self.root / "keys"
        keys.write_text(KEY + "\n")
        server = self.serve("--api-key-file", keys, "--per-key", 2)
        body = {"model": server.model, "prompt": "the", "max_tokens": 1}
        self.assertEqual(ask(server, "POST", "/v1/completions", {**body, "n": 2}, key=KEY)[0], 200)
        status, raw = ask(server, "POST", "/v1/completions", {**body, "n": 3}, key=KEY)
        self.assertEqual((status, json.loads(raw)["error"]["code"]), (400, "key_limit"))

    def test_metrics_have_the_names_that_others_know(self):
        server = self.serve()
        post(server, "/v1/completions", prompt="the", max_tokens=5, logit_bias={"299": -100})
        lines = ask(server, "GET", "/metrics")[1].splitlines()
        values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
        self.assertLess(abs(float(values["process_start_time_seconds"]) - time.time()), 120)
        self.assertGreater(float(values["process_cpu_seconds_total"]), 0)
        self.assertIn(int(float(values["process_open_fds"])), range(4, 200))
        self.assertEqual(values["hearth_inter_token_latency_seconds_count"], "4")
        self.assertEqual(values["hearth_time_per_output_token_seconds_count"], "1")

    def test_limits(self):
        server = self.serve("--max-tokens", 5, "--max-body", "2KiB", "--strict-requests")
        status, answer = post(server, "/v1/completions", prompt="the", max_tokens=6)
        self.assertEqual((status, answer["error"]["param"]), (400, "max_tokens"))
        status, answer = post(server, "/v1/completions", prompt="the " * 1000, max_tokens=1)
        self.assertEqual(status, 413)

    def test_too_many_tokens_are_as_many_as_there_are(self):
        server = self.serve("--max-tokens", 5)
        body = {"model": server.model, "prompt": "the", "max_tokens": 8192, "logit_bias": {"299": -100}}
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
        connection.request("POST", "/v1/completions", json.dumps(body),
                           {"Host": "localhost", "Content-Type": "application/json"})
        answer = connection.getresponse()
        self.assertEqual((answer.status, answer.getheader("x-hearth-max-tokens")), (200, "5"))
        self.assertEqual(json.loads(answer.read())["usage"]["completion_tokens"], 5)
        body["max_tokens"] = 3
        connection.request("POST", "/v1/completions", json.dumps(body),
                           {"Host": "localhost", "Content-Type": "application/json"})
        answer = connection.getresponse()
        self.assertIsNone(answer.getheader("x-hearth-max-tokens"))
        connection.close()

    def test_sigterm_lets_answers_end(self):
        server = self.serve()
        with socket.create_connection(("127.0.0.1", server.port), 60) as client:
            body = json.dumps({"model": server.model, "prompt": "the", "max_tokens": 40, "stream": True})
            client.sendall(f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                           f"Content-Length: {len(body)}\r\n\r\n{body}".encode())
            got = client.recv(4096)
            server.process.send_signal(signal.SIGTERM)
            while piece := client.recv(65536):
                got += piece
        self.assertIn(b"data: [DONE]", got)
        self.assertEqual(server.process.wait(60), 0, server.notes())

    def test_a_draining_server_says_so(self):
        server = self.serve("--drain", 60, "--max-batch", 1)
        idle = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        idle.request("GET", "/health", headers={"Host": "localhost"})
        self.assertEqual(idle.getresponse().read(), b'{"status":"ok"}')
        with slow_stream(server):
            server.process.send_signal(signal.SIGTERM)
            while ask(server, "GET", "/health")[0] == 200:
                time.sleep(0.01)
            self.assertEqual(ask(server, "GET", "/health"), (503, '{"status":"draining"}'))
            self.assertEqual(post(server, "/v1/completions", prompt="the")[0], 503)
            idle.request("GET", "/health", headers={"Host": "localhost"})
            self.assertEqual(idle.getresponse().status, 503)
        self.assertEqual(server.process.wait(60), 0, server.notes())

    def test_answers_that_are_cut_off_are_told_and_counted(self):
        server = self.serve("--drain", 0)
        with slow_stream(server) as client:
            server.process.send_signal(signal.SIGINT)
            got = b""
            while piece := client.recv(65536):
                got += piece
        self.assertIn(b'"code":"server_stopped"', got[-400:])
        self.assertEqual(server.process.wait(60), 1, server.notes())
        self.assertIn("1 answer was not whole after 0 s", server.notes())

    def test_without_files_it_waits_and_burns_nothing(self):
        server = self.serve(limits={resource.RLIMIT_NOFILE: (40, 40)})
        self.assertIn("limit of open files", server.notes())
        with contextlib.ExitStack() as clients:
            for _ in range(80):
                clients.enter_context(socket.create_connection(("127.0.0.1", server.port), 60))
            before = cpu_seconds(server.process.pid)
            time.sleep(1)
            self.assertLess(cpu_seconds(server.process.pid) - before, 0.5)
        self.assertEqual(ask(server, "GET", "/health")[0], 200)

    def test_a_large_stream_reaches_a_client_that_is_slow_at_first(self):
        server = self.serve()
        with slow_stream(server) as client:
            while "hearth_sequences_held 0\n" in (text := ask(server, "GET", "/metrics")[1]):
                self.assertIn("hearth_requests_open 1\n", text)
                time.sleep(0.02)
            size, tail = 0, b""
            while piece := client.recv(1 << 20):
                size, tail = size + len(piece), (tail + piece)[-100:]
        self.assertGreater(size, 3 << 20)
        self.assertIn(b"data: [DONE]", tail)

    def test_sigterm_when_idle_is_quick(self):
        server = self.serve()
        with socket.create_connection(("127.0.0.1", server.port), 60):
            start = time.monotonic()
            self.assertEqual(server.stop(), 0)
            self.assertLess(time.monotonic() - start, 10)

    def test_bad_flags(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            self.refused("serve", self.model, "--port", taken.getsockname()[1], says="listen on", code=1)
        self.refused("serve", self.model, "--host", "0.0.0.0", says="keys must be required")
        self.refused("serve", self.model, "--host", "example.org", "--no-auth", says="address")
        self.refused("serve", self.model, "--host", "example.org", says="address")
        self.refused("serve", self.model, "--port", 99999, says="--port")
        self.refused("serve", self.model, "--adapter", "=x", says="NAME=FOLDER")
        self.refused("serve", self.model, "--adapter", "a", "--adapter", "b", says="one adapter")
        self.refused("serve", self.model, "--adapter", "a", "--adapter", "b=c", says="exclude")
        for flag, value in (("--per-key", -2), ("--timeout", 0), ("--timeout", -5), ("--drain", -5), ("--max-body", 0), ("--max-body", "10TiB")):
            self.refused("serve", self.model, flag, value, says=flag)
        self.refused("serve", self.model, "--cors", "app.example", says="origin")
        short = self.root / "short"
        short.write_text("abc\n")
        self.refused("serve", self.model, "--api-key-file", short, says="a key must be")
        self.refused("serve", self.root / "none", says="none")


def load_tests(loader, *_):
    """The base class's own tests belong to test_generate."""
    return unittest.TestSuite(loader.loadTestsFromTestCase(case) for case in (KnownText, Served))


if __name__ == "__main__":
    unittest.main(verbosity=2)
