"""A served model to attack, and an honest client beside it: the parts of check_hostile_requests.py."""
import contextlib
import http.client
import json
import pathlib
import random
import signal
import socket
import struct
import subprocess
import threading
import time

import serve_process

HOSTILE, HONEST = "a-hostile-key-0123456789", "an-honest-key-0123456789"
CHAT, TEXT, EMBEDDINGS = "/v1/chat/completions", "/v1/completions", "/v1/embeddings"
# Answers of a request that was not answered.
NO_ANSWER, DIED = "none", "died"


def write_model(folder, binary, vocabulary=512, width=64, layers=2, context=4096):
    """A Llama of random weights with a tokenizer and a template: small, with room for long prompts."""
    folder.mkdir(parents=True)
    text = folder.parent / "text.txt"
    text.write_text("the cat sat on the mat and the dog sat on the log while the sun went down\n" * 40)
    subprocess.run([binary, "tokenizer", "train", text, "--vocab", str(vocabulary), "--special", "<|end|>", "-o",
                    folder / "tokenizer.json", "--quiet"], check=True)
    shapes = {"model.embed_tokens.weight": [vocabulary, width], "model.norm.weight": [width]}
    for i in range(layers):
        at = f"model.layers.{i}."
        shapes |= {f"{at}self_attn.{p}_proj.weight": [width, width] for p in "qkvo"}
        shapes |= {f"{at}mlp.{p}_proj.weight": [4 * width, width] for p in ("gate", "up")}
        shapes |= {f"{at}mlp.down_proj.weight": [width, 4 * width]}
        shapes |= {f"{at}{p}_layernorm.weight": [width] for p in ("input", "post_attention")}
    draw, header, data = random.Random(1), {}, b""
    for name, shape in shapes.items():
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        raw = struct.pack(f"<{count}f", *(1.0 if "norm" in name else draw.gauss(0, 0.1) for _ in range(count)))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    head = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(head)) + head + data)
    (folder / "config.json").write_text(json.dumps({
        "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": width,
        "intermediate_size": 4 * width, "num_hidden_layers": layers, "num_attention_heads": 4, "num_key_value_heads": 4,
        "vocab_size": vocabulary, "max_position_embeddings": context, "tie_word_embeddings": True,
        "rms_norm_eps": 1e-5, "eos_token_id": vocabulary - 1}))
    (folder / "chat_template.jinja").write_text(serve_process.TOOL_TEMPLATE)


class Target:
    """A server with two keys. with Target(MODEL, FOLDER) as t: t.ask(...)"""

    def __init__(self, model, folder, *flags):
        keys = pathlib.Path(folder) / "keys.txt"
        keys.write_text(f"{HOSTILE}\n{HONEST}\n")
        self.server = serve_process.Server(model, "--api-key-file", keys, *flags)
        self.port, self.model, self.pid = self.server.port, self.server.model, self.server.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.alive():
            self.server.process.send_signal(signal.SIGKILL)
        self.server.__exit__()

    def alive(self):
        return self.server.process.poll() is None

    def connect(self, receive_buffer=None):
        client = socket.socket()
        if receive_buffer:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        client.settimeout(30)
        client.connect(("127.0.0.1", self.port))
        return client

    def ask(self, path, body, key=HONEST, limit=20.0, method="POST"):
        """Status (or NO_ANSWER, DIED), the answer's bytes and the seconds until it was whole."""
        began = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=limit)
        try:
            raw = body if isinstance(body, (bytes, type(None))) else json.dumps({"model": self.model, **body}).encode()
            connection.request(method, path, raw, {"Host": "localhost", "Content-Type": "application/json",
                                                   "Authorization": "Bearer " + key})
            answer = connection.getresponse()
            data = answer.read()
            return answer.status, data, time.monotonic() - began
        except (OSError, http.client.HTTPException):
            return (NO_ANSWER if self.alive() else DIED), b"", time.monotonic() - began
        finally:
            connection.close()

    def health(self):
        status, data, took = self.ask("/health", None, method="GET", limit=5.0)
        try:
            return f"{json.loads(data)['status']}", took
        except (ValueError, KeyError):
            return str(status), took

    def memory(self, field="VmRSS"):
        """In MB; VmHWM is the most there was."""
        try:
            lines = pathlib.Path(f"/proc/{self.pid}/status").read_text().splitlines()
        except OSError:
            return 0.0
        return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(field + ":")), 0.0)

    def forget_peak(self):
        with contextlib.suppress(OSError):
            pathlib.Path(f"/proc/{self.pid}/clear_refs").write_text("5")


class Honest(threading.Thread):
    """Somebody who asks small things, one after the other, until told to stop: `worst` is the longest wait."""

    SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string", "maxLength": 20}}}
    BODY = {"messages": [{"role": "user", "content": "the cat"}], "max_tokens": 2,
            "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}}

    def __init__(self, target, limit, body=None):
        super().__init__(daemon=True)
        self.target, self.limit, self.body = target, limit, body or self.BODY
        self.worst, self.asked, self.failed = 0.0, 0, None
        self.health, self.health_wait = set(), 0.0
        self.over = threading.Event()
        self.start()

    def run(self):
        while not self.over.is_set() and self.target.alive():
            status, data, took = self.target.ask(CHAT, self.body, limit=self.limit)
            self.worst, self.asked = max(self.worst, took), self.asked + 1
            if status != 200:
                self.failed = self.failed or f"{status} {data[:120].decode(errors='replace')}"
            said, wait = self.target.health()
            self.health.add(said)
            self.health_wait = max(self.health_wait, wait)
            self.over.wait(0.05)

    def stop(self):
        self.over.set()
        self.join(self.limit + 10)
        return self
