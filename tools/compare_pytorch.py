#!/usr/bin/env python3
"""Trains the same model in Hearth and in PyTorch, in turns, and compares.

  compare_pytorch.py [--work b20,g124] [--variants REGEX] [--rounds N] [--steps N]

Each PyTorch variant {fp32, bf16} x {eager, compile} x {malloc as it comes,
tuned} is a process of its own that is kept warm; in every round it trains some
steps while Hearth waits and then Hearth trains while it waits, so that a noisy
machine is noisy for both. Peaks are the processes' own (VmHWM), with and, for
PyTorch, without what starting and compiling took. Either side may be absent:
the other is measured alone. Exit 77: both are.
"""
import argparse
import itertools
import json
import os
import pathlib
import re
import shlex
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEARTH = "build/release/hearth bench train --filter {work} --threads {threads} --json"
TUNED = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "8589934592", "MALLOC_TOP_PAD_": "67108864"}
ISA_PROBE = ("import torch; a = torch.ones(64, 64, dtype=torch.bfloat16); a @ a; "
             "print('capability:' + torch.backends.cpu.get_cpu_capability())")


class Variant:
    """A PyTorch process that trains when asked."""

    def __init__(self, args, work, precision, mode, malloc):
        self.name = f"{precision}-{mode}-{malloc}"
        command = [args.python, str(ROOT / "tools/pytorch_peer.py"), "--work", work, "--precision", precision,
                   "--threads", str(args.threads), "--warm-up", str(args.warm_up)]
        command += ["--compile"] if mode == "compile" else []
        environment = {k: v for k, v in os.environ.items() if k not in TUNED}
        environment.update(TUNED if malloc == "tuned" else {})
        self.seconds, self.last = [], {}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        stderr=None if args.verbose else subprocess.DEVNULL, env=environment)
        self.about = self.answer()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"PyTorch {self.name} stopped, exit {self.process.wait()}")
        return json.loads(line)

    def train(self, steps):
        self.process.stdin.write(f"{steps}\n")
        self.process.stdin.flush()
        self.last = self.answer()
        self.seconds += self.last["seconds"]

    def close(self):
        self.process.stdin.close()
        self.process.wait()

    def row(self, isa):
        middle = statistics.median(self.seconds)
        return {"side": "pytorch " + self.about["torch"].split("+")[0], "variant": self.name, "isa": isa,
                "threads": self.about["threads"], "rate": self.about["tokens"] / middle,
                "spread": spread(self.seconds), "tflops": self.about["flops"] / middle / 1e12,
                "peak_mib": self.last["peak_mib"], "steps_peak_mib": self.last["steps_peak_mib"]}


def spread(values):
    """Half the range, as a share of the median."""
    return (max(values) - min(values)) / 2 / statistics.median(values)


def run_hearth(command):
    """The fastest tokens/s row of one run with the process's own peak, or why
    there is none."""
    with tempfile.TemporaryFile("w+") as errors:
        try:
            process = subprocess.Popen(shlex.split(command), stdout=subprocess.PIPE, stderr=errors,
                                       text=True, cwd=ROOT)
        except OSError as e:
            return None, str(e)
        text = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        errors.seek(0)
        said = (errors.read() + text).split()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        return None, f"exit {process.returncode}: {' '.join(said)[:200]}"
    rows = [r for r in json.loads(text)["rows"] if r.get("unit") == "tokens/s"]
    if not rows:
        return None, "no row in tokens/s"
    best = max(rows, key=lambda r: r["rate"])
    return {**best, "process_peak_mib": usage.ru_maxrss / 1024}, None


def hearth_row(runs):
    rates = [r["rate"] for r in runs]
    row = {"side": "hearth", "variant": runs[0]["case"], "isa": runs[0].get("isa", ""),
           "threads": runs[0].get("threads"), "rate": statistics.median(rates), "spread": spread(rates),
           "peak_mib": max(r["process_peak_mib"] for r in runs)}
    if "share_of_peak" in runs[0]:
        row["share_of_peak"] = statistics.median(r["share_of_peak"] for r in runs)
    return row


def torch_isa(python):
    """{precision: what PyTorch multiplies with}, or None where it is absent."""
    done = subprocess.run([python, "-c", ISA_PROBE], capture_output=True, text=True,
                          env={**os.environ, "ONEDNN_VERBOSE": "1"})
    if done.returncode:
        return None
    capability = re.search(r"capability:(\w+)", done.stdout)[1].lower()
    matmul = re.search(r"exec,cpu,matmul,([^,]+),", done.stdout)
    return {"fp32": capability, "bf16": matmul[1].split(":")[-1] if matmul else capability}


def duel(args, work, parts, isa, hearth, runs):
    """One variant against Hearth; the row, with the median of the rounds'
    ratios where both sides ran."""
    variant, ratios = Variant(args, work, *parts), []
    try:
        for _ in range(args.rounds):
            variant.train(args.steps)
            run = run_hearth(hearth)[0] if hearth else None
            if run:
                runs.append(run)
                seconds = statistics.median(variant.last["seconds"])
                ratios.append(run["rate"] * seconds / variant.about["tokens"])
    finally:
        variant.close()
    row = variant.row(isa[parts[0]])
    if ratios:
        row["hearth_is"] = statistics.median(ratios)
    return row


def measure(args, work, isa):
    hearth = args.hearth.format(work=work, threads=args.threads)
    first, why = (None, "not asked for") if args.no_hearth else run_hearth(hearth)
    runs, rows = [first] if first else [], []
    if not first:
        print(f"{work}: Hearth is absent: {why}", file=sys.stderr)
    for parts in itertools.product(("fp32", "bf16"), ("eager", "compile"), ("plain", "tuned")):
        if isa and re.search(args.variants, "-".join(parts)):
            print(f"{work}: {'-'.join(parts)} ...", file=sys.stderr, flush=True)
            rows.append(duel(args, work, parts, isa, hearth if first else None, runs))
    rows.sort(key=lambda r: r["rate"])
    if runs:
        rows.append(hearth_row(runs))
        for row in rows[:-1]:
            row["hearth_memory_is"] = rows[-1]["peak_mib"] / row["peak_mib"]
    return rows


def cell(row, key, form):
    return format(row[key], form) if key in row else "-"


def print_table(work, rows):
    print(f"\n{work}\n{'side':16}{'variant':24}{'isa':20}{'tokens/s':>9}{'+-':>6}{'TFLOP/s':>9}"
          f"{'peak MiB':>10}{'(steps)':>9}{'hearth':>9}{'memory':>8}")
    for r in rows:
        print(f"{r['side']:16}{r['variant']:24}{r['isa']:20}{r['rate']:9.0f}{r['spread']:6.0%}"
              f"{cell(r, 'tflops', '.3f'):>9}{r['peak_mib']:10.0f}{cell(r, 'steps_peak_mib', '.0f'):>9}"
              f"{cell(r, 'hearth_is', '.2f'):>9}{cell(r, 'hearth_memory_is', '.2f'):>8}", flush=True)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", default="b20,g124", help="of b20, g124, lora05")
    parser.add_argument("--variants", default=".", help="regex over names such as bf16-compile-tuned")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=4, help="PyTorch's steps in a round")
    parser.add_argument("--warm-up", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has PyTorch")
    parser.add_argument("--hearth", default=HEARTH, help="command; prints hearth.bench/1")
    parser.add_argument("--no-hearth", action="store_true")
    parser.add_argument("--json", type=pathlib.Path, help="write the rows here too")
    parser.add_argument("--verbose", action="store_true", help="let PyTorch's messages through")
    return parser.parse_args()


def main():
    args, found = arguments(), {}
    isa = torch_isa(args.python)
    if not isa:
        print(f"PyTorch is absent from {args.python}", file=sys.stderr)
    for work in args.work.split(","):
        found[work] = measure(args, work, isa)
        if found[work]:
            print_table(work, found[work])
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0 if any(found.values()) else 77


if __name__ == "__main__":
    sys.exit(main())
