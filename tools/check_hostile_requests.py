#!/usr/bin/env python3
"""Attacks on `hearth serve` over loopback, each beside an honest client of another key, and what came of them.

usage: check_hostile_requests.py BINARY [--model MODEL] [--only WORD] [--limit SECONDS] [--json]

An attack fails when the server ends, when the honest client waits for more than a second or is refused, when the hostile
request is answered after its time or wrongly, when SIGTERM takes longer than it was given, when memory grows, or when a
key learns what another one asked. Exit code 1 when any fails. MODEL: any with a chat template; without one a small model
of random weights is written."""
import argparse
import contextlib
import json
import os
import pathlib
import signal
import sys
import tempfile
import threading
import time

import hostile_cases
from hostile_server import CHAT, DIED, EMBEDDINGS, HONEST, HOSTILE, NO_ANSWER, TEXT, Honest, Target, write_model

DRAIN = 2
WAIT = 1.0  # seconds that an honest request may take
AT_ONCE = 2  # of each hostile request


class Report:
    def __init__(self, as_json):
        self.rows, self.as_json = [], as_json
        if not as_json:
            print(f"{'':4} {'attack':48} {'answer':>9} {'after':>8} {'honest':>8} {'memory':>8}  health")

    def add(self, line, attack, good, answer="", after=None, honest=None, memory=None, health="", note=""):
        row = {"line": line, "attack": attack, "good": bool(good), "answer": str(answer), "after_s": after,
               "honest_s": honest, "memory_mb": memory, "health": health, "note": note}
        self.rows.append(row)
        if self.as_json:
            return
        number = lambda value, unit: "" if value is None else f"{value:.2f} {unit}" if unit == "s" else f"{value:.0f} {unit}"
        print(f"{'ok' if good else 'BAD':4} {line}: {attack[:45]:45} {str(answer):>9} {number(after, 's'):>8} "
              f"{number(honest, 's'):>8} {number(memory, 'MB'):>8}  {health}{'  ' + note if note else ''}", flush=True)


class Attacks:
    def __init__(self, model, folder, report, limit):
        self.model, self.folder, self.report, self.limit = model, pathlib.Path(folder), report, limit
        self.target = None

    def fresh(self, *flags):
        if self.target is None or not self.target.alive() or flags:
            self.close()
            self.target = Target(self.model, self.folder, "--drain", DRAIN, *flags)
        return self.target

    def close(self):
        if self.target is not None:
            self.target.__exit__()
        self.target = None

    def beside_honest(self, attack, body=None):
        """What the attack gives, the honest client that went on meanwhile, and by how much memory's peak grew."""
        target = self.fresh()
        target.forget_peak()
        before = target.memory()
        honest = Honest(target, self.limit, body)
        gave = attack(target)
        honest.stop()
        return gave, honest, target.memory("VmHWM") - before

    def judge(self, line, name, good, honest, **more):
        fine = honest.worst <= WAIT and not honest.failed and self.target.alive()
        note = more.pop("note", "") or (f"honest: {honest.failed}" if honest.failed else "")
        self.report.add(line, name, good and fine, honest=honest.worst, health=",".join(sorted(honest.health)),
                        note=note, **more)
        # What is still at work would be counted against the next.
        if not good or not fine:
            self.close()

    def case(self, case):
        def attack(target):
            body, out = case.body(target.model), []
            threads = [threading.Thread(target=lambda: out.append(target.ask(case.path, body, HOSTILE, self.limit)))
                       for _ in range(AT_ONCE)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return max(out, key=lambda o: o[2])

        (status, data, took), honest, grew = self.beside_honest(attack)
        # One after the other, since one key leaves a worker to the rest.
        good = status in case.status + ((503,) if case.status != (200,) else ()) and took <= AT_ONCE * max(case.within, 5.0) + 1
        note = "" if status in (200, NO_ANSWER, DIED) else data[:110].decode(errors="replace")
        self.judge(case.line, case.name, good and grew < 1500, honest, answer=status, after=took, memory=grew, note=note)

    def drain(self):
        """SIGTERM in the middle of work that takes long."""
        target = self.fresh()
        case = next(c for c in hostile_cases.CASES if c.name == "allOf of 3,900 with a property each")
        for _ in range(AT_ONCE):
            threading.Thread(target=target.ask, args=(CHAT, case.body(target.model), HOSTILE, 120), daemon=True).start()
        time.sleep(1)
        began = time.monotonic()
        target.server.process.send_signal(signal.SIGTERM)
        with contextlib.suppress(Exception):
            target.server.process.wait(120)
        took = time.monotonic() - began
        self.report.add(2, f"SIGTERM beside them, --drain {DRAIN}", took < DRAIN + 2.5, answer="ended", after=took)
        self.close()

    def leak(self):
        """Whether a key is told that another one asked the same; in memory, and on disk after a new start."""
        with tempfile.TemporaryDirectory() as kept:
            for where in ("memory", "disk"):
                target = self.fresh("--prefix-dir", kept)
                def cached(key, prompt):
                    body = {"prompt": prompt * 12, "max_tokens": 2, "temperature": 0}
                    status, data, _ = target.ask(TEXT, body, key)
                    usage = json.loads(data)["usage"] if status == 200 else {}
                    return usage.get("prompt_tokens_details", {}).get("cached_tokens", -1)

                # What lies on disk was asked by the honest one alone, before the new start.
                spoken, kept_text = "the cat sat on the mat and the dog ", "the sun went down while the log sat on "
                if where == "memory":
                    cached(HONEST, kept_text)
                    cached(HONEST, spoken)
                text = spoken if where == "memory" else kept_text
                others, own = cached(HOSTILE, text), cached(HONEST, text)
                self.report.add(3, f"another key's prompt, kept in {where}", others == 0 and own > 0, answer=f"{others} tokens",
                                note=f"one's own: {own}")
                self.stop_well()

    def stop_well(self):
        self.target.server.stop()
        self.close()

    def slow_readers(self):
        def attack(target):
            body = json.dumps({"model": target.model, "prompt": "the", "max_tokens": 900, "n": 16, "stream": True,
                               "logprobs": 50, "seed": 1}).encode()
            head = (f"POST {TEXT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                    f"Authorization: Bearer {HOSTILE}\r\nContent-Length: {len(body)}\r\n\r\n").encode()
            clients = [target.connect(4096) for _ in range(17)]
            for client in clients:
                client.sendall(head + body)
            time.sleep(8)
            for client in clients:
                client.close()

        _, honest, grew = self.beside_honest(attack)
        self.judge(4, "17 clients that ask for 272 texts and do not read", grew < 500, honest, memory=grew,
                   note=f"{honest.asked} honest answers" if not honest.failed else "")

    def large_answer(self):
        for name, tokens, stream in (("whole", 16, False), ("whole, no new token", 0, False), ("streamed", 0, True)):
            body = {"prompt": [7] * 1000, "echo": True, "logprobs": 64, "n": 16, "max_tokens": tokens, "stream": stream}
            (status, data, took), honest, grew = self.beside_honest(lambda t: t.ask(TEXT, body, HOSTILE, 60))
            note = data[:110].decode(errors="replace") if status != 200 else f"{len(data) / 1e6:.1f} MB"
            self.judge(5, f"echo, 64 log-probs, n 16, 1,000 tokens, {name}", status in (200, 400) and grew < 200, honest,
                       answer=status, after=took, memory=grew, note=note)

    def long_prompts(self, model):
        """More prompts than are read in a minute: they are read, scored or made vectors in turns with those of others."""
        tokens = 60_000
        for name, path, more in (("read", TEXT, {"max_tokens": 1}), ("scored", TEXT, {"max_tokens": 0, "echo": True, "logprobs": 1}),
                                 ("as vectors", EMBEDDINGS, {})):
            key = "input" if path == EMBEDDINGS else "prompt"

            def attack(target):
                for i in range(8):
                    body = {key: [5 + i] * tokens, **more}
                    threading.Thread(target=target.ask, args=(path, body, HOSTILE, 60), daemon=True).start()
                time.sleep(6)

            self.close()
            self.target = Target(model, self.folder, "--drain", DRAIN)
            _, honest, grew = self.beside_honest(attack)
            self.judge(2, f"8 prompts of {tokens:,} tokens, {name}", "late" in honest.health, honest, memory=grew,
                       note=f"{honest.asked} honest answers" if not honest.failed else "")
            self.close()

    def ambiguous_masks(self):
        """Answers whose every next token is much to work out, asked for again and again; the honest client has 20 tokens."""
        pattern = "|".join(".{%d}x" % (3 * i + 40) for i in range(600))
        form = {"type": "regex", "pattern": pattern}
        plain = {key: value for key, value in Honest.BODY.items() if key != "response_format"} | {"max_tokens": 20}
        for name, stop in (("", []), (", stop strings", ["x", "the"])):

            def attack(target):
                over, answers = threading.Event(), []
                body = {"messages": [{"role": "user", "content": "the"}], "max_tokens": 200, "response_format": form,
                        "stop": stop}

                def ask():
                    while not over.is_set():
                        answers.append(target.ask(CHAT, body, HOSTILE, 60)[0])

                clients = [threading.Thread(target=ask, daemon=True) for _ in range(8)]
                for client in clients:
                    client.start()
                time.sleep(8)
                over.set()
                return answers

            answers, honest, grew = self.beside_honest(attack, plain)
            note = f"{honest.asked} honest answers, {len(answers)} others" if not honest.failed else ""
            self.judge(2, f"8 clients, a regex of 600 branches{name}", grew < 1000, honest, memory=grew, note=note)
            self.close()

    def repeated_labels(self):
        """An answer of the newer form repeats a request's labels, in a stream three times; nobody reads it."""
        def attack(target):
            body = json.dumps({"model": target.model, "input": "the", "metadata": {"a": "b" * 7_000_000}, "stream": True,
                               "max_output_tokens": 16}).encode()
            head = (f"POST /v1/responses HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                    f"Authorization: Bearer {HOSTILE}\r\nContent-Length: {len(body)}\r\n\r\n").encode()
            clients = [target.connect(4096) for _ in range(40)]
            for client in clients:
                with contextlib.suppress(OSError):
                    client.sendall(head + body)
            time.sleep(3)
            for client in clients:
                client.close()
            return target.ask("/v1/responses", body, HOSTILE, self.limit)

        (status, data, took), honest, grew = self.beside_honest(attack)
        self.judge(5, "40 answers that would repeat 7 MB thrice", status in (400, 503) and grew < 300, honest, answer=status,
                   after=took, memory=grew, note=data[:90].decode(errors="replace"))

    def malformed(self):
        head = f"POST {TEXT} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {HOSTILE}\r\n" \
               "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        for name, rest in (("white space before a chunk's size", " 2\r\n{}\r\n0\r\n\r\n"),
                           ("a bare CR in a chunk's extension", "2;x\ry\r\n{}\r\n0\r\n\r\n"),
                           ("a line in the trailer that is no header", "2\r\n{}\r\n0\r\nnone\r\n\r\n")):
            with self.fresh().connect() as client:
                client.sendall((head + rest).encode())
                got = client.recv(65536)
            # The body is no request either; what is refused here is its form.
            refused = got.startswith(b"HTTP/1.1 400") and b"chunk" in got or b"header" in got
            self.report.add(7, name, refused, answer=got[9:12].decode(), note=got.split(b"\r\n\r\n", 1)[-1][:90].decode())

    def partial_heads(self):
        def attack(target):
            clients = []
            with contextlib.suppress(OSError):
                for _ in range(600):
                    client = target.connect()
                    client.sendall(b"GET / HTTP/1.1\r\nHost: lo")
                    clients.append(client)
            time.sleep(3)
            for client in clients:
                client.close()

        _, honest, grew = self.beside_honest(attack)
        self.judge(7, "600 requests that are begun and not ended", True, honest, memory=grew,
                   note=f"{honest.asked} honest answers" if not honest.failed else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--model")
    parser.add_argument("--only", default="", help="a part of an attack's name")
    parser.add_argument("--limit", type=float, default=20.0, help="seconds after which no answer is waited for")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    os.environ["HEARTH_BINARY"] = options.binary
    report = Report(options.json)
    with tempfile.TemporaryDirectory() as folder:
        model = options.model
        if model is None:
            model = pathlib.Path(folder) / "model"
            write_model(model, options.binary)
        attacks = Attacks(model, folder, report, options.limit)
        steps = [(case.name, lambda c=case: attacks.case(c)) for case in hostile_cases.CASES]
        steps += [("drain", attacks.drain), ("leak", attacks.leak), ("slow readers", attacks.slow_readers),
                  ("large answer", attacks.large_answer), ("ambiguous masks", attacks.ambiguous_masks),
                  ("repeated labels", attacks.repeated_labels),
                  ("malformed", attacks.malformed),
                  ("partial heads", attacks.partial_heads)]
        long = pathlib.Path(folder) / "long" / "model"
        write_model(long, options.binary, layers=1, context=65_536)
        steps.append(("long prompts", lambda: attacks.long_prompts(long)))
        try:
            for name, step in steps:
                if options.only in name:
                    step()
        finally:
            attacks.close()
    bad = sum(not row["good"] for row in report.rows)
    if options.json:
        print(json.dumps({"schema": "hearth.hostile/1", "rows": report.rows, "bad": bad}, indent=1))
    else:
        print(f"{len(report.rows)} attacks, {bad} of them did harm")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
