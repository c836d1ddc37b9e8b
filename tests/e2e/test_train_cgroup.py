"""In a memory cgroup that holds no whole micro-batch, a run finishes, is not killed, and ends in the same weights."""
import json
import pathlib
import struct
import tempfile

from cgroup import memory_cgroup, run_inside
from train_case import HEARTH, hearth

LIMIT = 360 << 20
RECIPE = """
model: {arch: llama, dim: 128, layers: 4, heads: 4, ffn: 352}
data: {synth: {kind: stories, n: 400, seed: 1}, tokenizer: {train: {vocab: 512}}, length: 256, cache: CACHE}
train: {tokens_per_step: 8192, steps: 2, precision: fp32}
optim: {lr: 1.0e-3, warmup: 0, schedule: constant}
"""


def weights(run):
    raw = (run / "checkpoints/step-000002/weights.safetensors").read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    data = raw[8 + size:]
    return json.loads(raw[8:8 + size]), struct.unpack(f"<{len(data) // 4}f", data)


def main():
    with tempfile.TemporaryDirectory() as name, memory_cgroup(LIMIT) as folder:
        root = pathlib.Path(name)
        (root / "recipe.yaml").write_text(RECIPE.replace("CACHE", f"{root}/cache"))
        pinned = hearth("train", root / "recipe.yaml", "-o", root / "pinned", "train.micro_batch_size=2")
        assert pinned.returncode == 0, pinned.stderr
        run = run_inside(folder, [HEARTH, "train", root / "recipe.yaml", "-o", root / "inside"])
        assert run.returncode == 0, (run.returncode, run.stderr)
        assert "cgroup" in run.stderr, run.stderr
        last = json.loads((root / "inside/metrics.jsonl").read_text().splitlines()[-1])
        assert last["micro_batch"] * 256 < 8192, last
        (a_head, a), (b_head, b) = weights(root / "pinned"), weights(root / "inside")
        assert a_head == b_head
        worst = max(abs(x - y) for x, y in zip(a, b))
        # Adam's first steps move a weight by the sign of a gradient that may be next to nothing.
        near = sum(abs(x - y) < 1e-5 for x, y in zip(a, b)) / len(a)
        assert worst < 4e-3 and near > 0.999, (worst, near)
        print(f"finished under a limit of {LIMIT >> 20} MiB; largest difference {worst:.1e}, {100 * near:.3f} % within 1e-5")


main()
