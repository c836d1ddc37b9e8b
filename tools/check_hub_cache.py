#!/usr/bin/env python3
"""The cache of `hearth pull` against PyPI's huggingface_hub, both ways.

  tools/check_hub_cache.py HEARTH

A hub of our own on 127.0.0.1 (tests/e2e/loopback_hub.py) is pulled from by
hearth, and huggingface_hub must find, scan and use what came; then by
huggingface_hub, and hearth must find it and fetch nothing. Exit 77: the
package is missing.
"""
import importlib.util
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import urllib.request

import peers

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests/e2e"))
from loopback_hub import Hub  # noqa: E402

FILES = {
    "config.json": b'{"model_type": "llama"}',
    "tokenizer.json": b"{}",
    "model-00001-of-00002.safetensors": random.Random(1).randbytes(300_000),
    "model-00002-of-00002.safetensors": random.Random(2).randbytes(200_000),
    "model.safetensors.index.json": json.dumps({"weight_map": {
        "a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}).encode(),
    "additional_chat_templates/tool use.jinja": b"{{ x }}",
}


def hearth(binary, *words):
    run = subprocess.run([binary, "pull", *words, "--quiet"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout


def requests(hub):
    """What the hub was asked so far; by HTTP, since it lives in the parent process."""
    with urllib.request.urlopen(hub.address + "/log") as answer:
        return json.load(answer)


def contents(folder):
    folder = pathlib.Path(folder)
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def layout(folder):
    """Every path below the folder; what links point to."""
    out = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if ".locks" in name or name.startswith("trees") or path.is_dir():
            continue
        out[name] = os.readlink(path) if path.is_symlink() else path.read_bytes()
    return out


def ours_by_theirs(binary, hub, cache, commit):
    from huggingface_hub import scan_cache_dir, snapshot_download, try_to_load_from_cache

    hearth(binary, "org/model")
    before = len(requests(hub))
    assert before > 0
    folder = snapshot_download("org/model", local_files_only=True)
    assert contents(folder) == FILES, contents(folder).keys()
    assert len(requests(hub)) == before
    for name, data in FILES.items():
        path = try_to_load_from_cache("org/model", name)
        assert isinstance(path, str) and pathlib.Path(path).read_bytes() == data, name
    scan = scan_cache_dir()
    assert not scan.warnings, scan.warnings
    (repo,) = scan.repos
    (revision,) = repo.revisions
    assert (repo.repo_id, revision.commit_hash, set(revision.refs)) == ("org/model", commit, {"main"})
    assert {f.file_name for f in revision.files} == {pathlib.Path(n).name for n in FILES}
    assert repo.size_on_disk == sum(map(len, FILES.values()))
    # Online it must see that every file is there.
    snapshot_download("org/model")
    assert not [r for r in requests(hub)[before:] if r[0] == "GET" and "/api/" not in r[1]], requests(hub)[before:]
    return layout(cache / "models--org--model")


def theirs_by_ours(binary, hub, cache):
    from huggingface_hub import hf_hub_download, snapshot_download

    hf_hub_download("org/model", "config.json")
    partly = subprocess.run([binary, "pull", "org/model", "--offline"], capture_output=True, text=True)
    assert partly.returncode == 2 and "missing" in partly.stderr, partly.stderr
    snapshot_download("org/model")
    before = len(requests(hub))
    folder = hearth(binary, "org/model", "--offline").strip()
    assert contents(folder) == FILES and len(requests(hub)) == before
    document = json.loads(hearth(binary, "org/model", "--json"))
    assert document["fetched_bytes"] == 0, document
    assert {f["state"] for f in document["files"]} == {"cached"}
    return layout(cache / "models--org--model")


def main(binary):
    with tempfile.TemporaryDirectory() as root, Hub() as hub:
        root = pathlib.Path(root)
        commit = hub.add("org/model", FILES).commit
        os.environ.update(HF_ENDPOINT=hub.address, HF_HUB_DISABLE_XET="1", HF_HUB_DISABLE_TELEMETRY="1",
                          HF_HUB_DISABLE_PROGRESS_BARS="1")
        for variable in ("HF_TOKEN", "HF_TOKEN_PATH", "HF_HUB_CACHE", "HF_HUB_OFFLINE"):
            os.environ.pop(variable, None)
        found = {}
        for side in ("ours", "theirs"):
            # A process each: the package reads its settings when it is imported.
            os.environ["HF_HOME"] = str(root / side)
            child = os.fork()
            if child == 0:
                cache = root / side / "hub"
                seen = ours_by_theirs(binary, hub, cache, commit) if side == "ours" else theirs_by_ours(binary, hub, cache)
                (root / f"{side}.txt").write_text(repr(seen))
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0, side
            found[side] = (root / f"{side}.txt").read_text()
        assert found["ours"] == found["theirs"], f"\n{found['ours']}\n{found['theirs']}"
    import huggingface_hub
    print(f"huggingface_hub {huggingface_hub.__version__}: found, scanned and used what hearth pulled; the reverse; "
          "the same paths, links and references")


if __name__ == "__main__":
    # Not imported here: the package reads its settings when it is.
    if importlib.util.find_spec("huggingface_hub") is None:
        peers.skip(ModuleNotFoundError(name="huggingface_hub"))
    main(sys.argv[1])
