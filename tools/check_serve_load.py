#!/usr/bin/env python3
"""Many streaming clients at once against `hearth serve`: no error, memory flat after warm-up, nobody starved.

usage: check_serve_load.py MODEL [--clients 64] [--seconds 120] [--tokens 100]
Fails (1) on any error, when live bytes grew by more than 2 % after the first quarter, or when the slowest client got less
than 0.8 of the median's tokens. Prints what it measured."""
import argparse
import asyncio
import json
import statistics
import sys
import time
import urllib.request

import serve_process


def request_bytes(model, seed, tokens):
    body = json.dumps({"model": model, "prompt": f"Once upon a time, number {seed % 7},", "stream": True, "seed": seed,
                       "max_tokens": tokens, "temperature": 0.8}).encode()
    return b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (
        len(body), body)


async def one_client(index, port, model, until, tokens, result):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    turn = 0
    while time.monotonic() < until:
        writer.write(request_bytes(model, index * 1000 + turn, tokens))
        await writer.drain()
        turn += 1
        start, tail, first = time.monotonic(), b"", None
        while True:
            piece = await asyncio.wait_for(reader.read(65536), 120)
            if not piece:
                result["errors"].append(f"client {index}: the connection ended")
                return
            if first is None:
                first = time.monotonic() - start
                if not piece.startswith(b"HTTP/1.1 200"):
                    result["errors"].append(f"client {index}: {piece[:200]!r}")
                    return
            result["tokens"][index] += (tail[-5:] + piece).count(b'"text"') - tail[-5:].count(b'"text"')
            tail = (tail + piece)[-64:]
            if b'{"error":' in piece:
                result["errors"].append(f"client {index}: {piece[-300:]!r}")
                return
            if tail.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n"):
                break
        result["first"].append(first)
    writer.close()


def metrics(url):
    with urllib.request.urlopen(url + "/metrics", timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return float(values["hearth_memory_live_bytes"]), float(values["process_resident_memory_bytes"])


async def watch(url, until, samples):
    while time.monotonic() < until:
        samples.append(await asyncio.to_thread(metrics, url))
        await asyncio.sleep(2)


async def load(server, a):
    until = time.monotonic() + a.seconds
    result = {"errors": [], "tokens": [0] * a.clients, "first": []}
    samples = []
    clients = [one_client(i, server.port, server.model, until, a.tokens, result) for i in range(a.clients)]
    answers = await asyncio.gather(watch(server.url, until, samples), *clients, return_exceptions=True)
    result["errors"] += [repr(e) for e in answers if isinstance(e, BaseException)]
    return result, samples


def growth(values):
    """How much the highest of the last quarter is above the highest of the second."""
    quarter = max(1, len(values) // 4)
    return max(values[-quarter:]) / max(values[quarter:2 * quarter] or values) - 1


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--tokens", type=int, default=100)
    parser.add_argument("--flags", nargs="*", default=[])
    a = parser.parse_args()
    with serve_process.Server(a.model, "--max-batch", a.clients, *a.flags) as server:
        result, samples = asyncio.run(load(server, a))
    tokens = result["tokens"]
    median, slowest = statistics.median(tokens), min(tokens)
    live, resident = [s[0] for s in samples], [s[1] for s in samples]
    print(f"{a.clients} clients, {a.seconds:.0f} s: {sum(tokens)} tokens, {sum(tokens) / a.seconds:.0f} tokens/s, "
          f"{len(result['first'])} answers, first piece after {statistics.median(result['first'] or [0]) * 1e3:.0f} ms (median)")
    print(f"slowest client {slowest}, median {median:.0f}: {slowest / max(median, 1):.2f}")
    print(f"live bytes {live[0] / 2**20:.1f} -> {live[-1] / 2**20:.1f} MiB ({growth(live):+.2%} after warm-up), "
          f"resident {resident[0] / 2**20:.1f} -> {resident[-1] / 2**20:.1f} MiB ({growth(resident):+.2%})")
    wrong = result["errors"][:5]
    if growth(live) > 0.02 or growth(resident) > 0.05:
        wrong.append("memory grew")
    if slowest < 0.8 * median:
        wrong.append("a client was starved")
    for line in wrong:
        print("FAILED:", line)
    print(f"{len(result['errors'])} errors")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
