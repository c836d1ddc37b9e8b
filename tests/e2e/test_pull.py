"""hearth pull against a hub of our own that behaves, and against one that does not: it breaks off, lies, refuses,
redirects, drips. Nothing half-fetched is ever in place, and every failure is one line."""
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from loopback_hub import Hub, break_off, status

HEARTH = os.environ["HEARTH_BINARY"]
WEIGHTS = random.Random(7).randbytes(3_000_000)
SHARD = random.Random(8).randbytes(700_000)
FILES = {
    "config.json": b'{"model_type": "llama"}',
    "tokenizer.json": b"{}",
    "model.safetensors": WEIGHTS,
    "README.md": b"# hello\n",
    "pytorch_model.bin": b"pickle",
}


class Pull(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.root = pathlib.Path(temporary.name)
        self.cache = self.root / "hub"
        self.hub = Hub()
        self.addCleanup(self.hub.__exit__)
        self.repo = self.hub.add("org/name", FILES)
        self.environment = {"HF_HOME": str(self.root), "HF_ENDPOINT": self.hub.address}

    def env(self, **more):
        drop = ("HF_", "HUGGING", "TRANSFORMERS_", "XDG_")
        clean = {k: v for k, v in os.environ.items() if not k.startswith(drop)}
        return {**clean, **self.environment, **more}

    def start(self, *words, **more):
        return subprocess.Popen([HEARTH, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env=self.env(**more))

    def pull(self, *words, name="org/name", **more):
        process = self.start("pull", name, "--retry-wait", "0.01", *words, **more)
        out, err = process.communicate(timeout=60)
        process.out, process.err = out.decode(), err.decode()
        return process

    def fails(self, phrase, *words, code=1, **more):
        run = self.pull("--quiet", *words, **more)
        self.assertEqual(run.returncode, code, run.err)
        errors = [line for line in run.err.splitlines() if line.startswith("error:")]
        self.assertEqual(len(errors), 1, run.err)
        self.assertIn(phrase, errors[0])
        self.assertLessEqual(len(run.err.splitlines()), 2, run.err)
        self.assertEqual(run.out, "")
        return run

    @property
    def folder(self):
        return self.cache / "models--org--name"

    @property
    def snapshot(self):
        return self.folder / "snapshots" / self.repo.commit

    def blob(self, name):
        return self.folder / "blobs" / self.repo.etag(name)

    def assert_nothing_in_place(self):
        self.assertFalse(self.snapshot.exists())
        self.assertFalse((self.folder / "refs/main").exists())

    def assert_whole(self):
        for name in ("config.json", "tokenizer.json", "model.safetensors"):
            self.assertEqual((self.snapshot / name).read_bytes(), FILES[name], name)
        self.assertEqual((self.folder / "refs/main").read_text(), self.repo.commit)
        self.assertEqual(list((self.folder / "blobs").glob("*.incomplete")), [])


class Works(Pull):
    def test_fetches_what_a_model_needs(self):
        run = self.pull()
        self.assertEqual(run.returncode, 0, run.err)
        self.assertEqual(run.out.strip(), str(self.snapshot))
        self.assert_whole()
        self.assertFalse((self.snapshot / "README.md").exists())
        self.assertFalse((self.snapshot / "pytorch_model.bin").exists())
        link = os.readlink(self.snapshot / "model.safetensors")
        self.assertEqual(link, "../../blobs/" + self.repo.etag("model.safetensors"))

    def test_a_second_pull_fetches_nothing(self):
        self.pull()
        before = len(self.hub.log)
        run = self.pull("--json")
        document = json.loads(run.out)
        self.assertEqual((document["fetched_bytes"], document["missing_bytes"]), (0, 0))
        self.assertEqual({f["state"] for f in document["files"]}, {"cached"})
        self.assertEqual([p for p in self.hub.paths()[-2:] if "resolve" in p], [])
        self.assertEqual(len(self.hub.log) - before, 2)

    def test_dry_run_writes_nothing(self):
        run = self.pull("--dry-run")
        self.assertEqual(run.returncode, 0, run.err)
        self.assertIn("model.safetensors", run.out)
        self.assertIn("missing", run.out)
        self.assertFalse(self.cache.exists())
        document = json.loads(self.pull("--dry-run", "--json", "--all").out)
        self.assertEqual(document["schema"], "hearth.pull/1")
        self.assertEqual(len(document["files"]), len(FILES))
        self.assertEqual(document["missing_bytes"], sum(map(len, FILES.values())))

    def test_globs_all_and_one_file(self):
        self.pull("--include", "*.md", "--include", "tok*")
        self.assertEqual(sorted(os.listdir(self.snapshot)), ["README.md", "tokenizer.json"])
        run = self.start("pull", "--include", "config*", "org/name", "--quiet")
        self.assertEqual((run.communicate()[1], run.returncode), (b"", 0))
        self.assertTrue((self.snapshot / "config.json").exists())
        self.pull("--all", "--exclude", "*.bin")
        self.assertEqual(len(os.listdir(self.snapshot)), len(FILES) - 1)
        self.pull(name="org/name/pytorch_model.bin")
        self.assertEqual((self.snapshot / "pytorch_model.bin").read_bytes(), b"pickle")

    def test_revisions_and_commits(self):
        self.repo.revisions["refs/pr/1"] = self.repo.revisions["v1"] = self.repo.commit
        for name in ("org/name@refs/pr/1", "org/name@v1", f"org/name@{self.repo.commit}"):
            self.assertEqual(self.pull(name=name).returncode, 0)
        self.assertEqual((self.folder / "refs/refs/pr/1").read_text(), self.repo.commit)
        self.assertEqual(sorted(os.listdir(self.folder / "refs")), ["refs", "v1"])

    def test_folders_and_shards(self):
        files = {f"model-0000{i}-of-00004.safetensors": SHARD[i:] for i in range(1, 5)}
        files |= {"config.json": b"{}", "additional_chat_templates/tool use.jinja": b"{{ x }}"}
        repo = self.hub.add("org/shards", files)
        self.assertEqual(self.pull("--jobs", "3", name="org/shards").returncode, 0)
        snapshot = self.cache / "models--org--shards/snapshots" / repo.commit
        for name, data in files.items():
            self.assertEqual((snapshot / name).read_bytes(), data)

    def test_a_mirror_without_trees_is_asked_file_by_file(self):
        self.hub.trees = False
        self.assertEqual(self.pull().returncode, 0)
        self.assert_whole()
        self.assertEqual(len(self.hub.paths("HEAD")), 3)

    def test_pages_of_a_listing(self):
        entries = self.repo.tree()

        def page(handler):
            at = int(handler.path.partition("cursor=")[2] or 0)
            more = {"Link": f'<{self.hub.address}{handler.path.split("&")[0]}&cursor={at + 1}>; rel="next"'}
            handler.reply_json(entries[at:at + 1], more if at + 1 < len(entries) else {})
            return True

        self.hub.rule("GET", "/tree/", page)
        self.assertEqual(self.pull().returncode, 0)
        self.assert_whole()

    def test_offline_and_the_cache(self):
        self.fails("every file is missing", "--offline", code=2)
        self.pull()
        before = len(self.hub.log)
        for run in (self.pull("--offline"), self.pull(HF_HUB_OFFLINE="1")):
            self.assertEqual((run.returncode, run.out.strip()), (0, str(self.snapshot)))
        self.assertEqual(len(self.hub.log), before)
        self.blob("model.safetensors").unlink()
        self.fails("a file of weights is missing", "--offline", code=2)

    def test_a_cache_without_the_tokenizer_is_not_whole(self):
        self.pull("--exclude", "tok*")
        self.assertFalse((self.snapshot / "tokenizer.json").exists())
        self.fails("a tokenizer is missing", "--offline", code=2)
        # hf: fetches what is missing, and has the rest without it where there is no network.
        run = self.inspect(HF_HUB_OFFLINE="1")
        self.assertNotIn("is missing", run.err)
        self.assertFalse((self.snapshot / "tokenizer.json").exists())
        run = self.inspect()
        self.assertIn("without a tokenizer: fetching it", run.err)
        self.assert_whole()
        before = len(self.hub.log)
        self.assertEqual(self.pull("--offline").returncode, 0)
        self.inspect()
        self.assertEqual(len(self.hub.log), before)

    def test_a_model_that_has_no_tokenizer_is_whole(self):
        files = {name: data for name, data in FILES.items() if name != "tokenizer.json"}
        repo = self.hub.add("org/bare", files)
        self.pull(name="org/bare")
        absent = self.cache / "models--org--bare/.no_exist" / repo.commit / "tokenizer.json"
        self.assertEqual(absent.read_bytes(), b"")
        before = len(self.hub.log)
        run = self.pull("--offline", name="org/bare")
        self.assertEqual(run.returncode, 0, run.err)
        self.inspect("hf:org/bare")
        self.assertEqual(len(self.hub.log), before)

    def inspect(self, name="hf:org/name", **more):
        process = self.start("inspect", name, **more)
        process.err = process.communicate(timeout=60)[1].decode()
        return process

    def test_cache_folder_of_the_environment(self):
        for more, place in (({"HF_HUB_CACHE": "$HF_HOME/a"}, "a"), ({"HF_HOME": str(self.root / "b")}, "b/hub")):
            self.assertEqual(self.pull(**more).returncode, 0)
            self.assertTrue((self.root / place / "models--org--name").is_dir())
        del self.environment["HF_HOME"]
        self.assertEqual(self.pull(XDG_CACHE_HOME=str(self.root / "c")).returncode, 0)
        self.assertTrue((self.root / "c/huggingface/hub/models--org--name").is_dir())

    def test_verify_finds_a_changed_blob(self):
        self.pull()
        blob = self.blob("model.safetensors")
        blob.write_bytes(WEIGHTS[:-1] + b"x")
        self.assertEqual(json.loads(self.pull("--json").out)["fetched_bytes"], 0)
        self.assertEqual(json.loads(self.pull("--json", "--verify").out)["fetched_bytes"], len(WEIGHTS))
        self.assert_whole()

    def test_two_at_a_time_fetch_once(self):
        runs = [self.start("pull", "org/name", "--quiet") for _ in range(4)]
        self.assertEqual([run.wait(60) for run in runs], [0] * 4)
        self.assert_whole()
        self.assertEqual(len([p for p in self.hub.paths() if "signature" in p]), 1)
        for run in runs:
            run.communicate()


    def test_names_of_the_same_bytes_are_fetched_once(self):
        repo = self.hub.add("org/twins", {**FILES, "model-2.safetensors": WEIGHTS})
        run = self.pull("--all", name="org/twins")
        self.assertEqual(run.returncode, 0, run.err)
        self.assertNotIn("another process", run.err)
        snapshot = self.cache / "models--org--twins" / "snapshots" / repo.commit
        for name in ("model.safetensors", "model-2.safetensors"):
            self.assertEqual((snapshot / name).read_bytes(), WEIGHTS)

    def test_containers_that_share_a_cache(self):
        """In each of them the process has the same number."""
        alone = ["unshare", "--pid", "--fork", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"])]
        if shutil.which("unshare") is None or subprocess.run([*alone, "true"], capture_output=True).returncode:
            self.skipTest("this machine gives no process namespaces")
        many = self.hub.add("org/many", {**FILES, **{f"part-{i}.json": b"%d" % i for i in range(40)}})
        for _ in range(3):
            shutil.rmtree(self.cache / "models--org--many" / "snapshots", ignore_errors=True)
            runs = [subprocess.Popen([*alone, HEARTH, "pull", "org/many", "--all", "--quiet"], env=self.env(),
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(12)]
            told = [run.communicate(timeout=120)[1].decode() for run in runs]
            self.assertEqual([run.returncode for run in runs], [0] * 12, told)
        snapshot = self.cache / "models--org--many" / "snapshots" / many.commit
        self.assertEqual([p.name for p in snapshot.iterdir() if ".tmp-" in p.name], [])


class Token(Pull):
    SECRET = "hf_secretsecretsecret"

    def authorisations(self):
        return {(storage, headers.get("Authorization")) for _, _, headers, storage in self.hub.log}

    def test_goes_to_the_hub_and_never_to_the_storage(self):
        self.hub.token = self.SECRET
        run = self.pull("--verbose", HF_TOKEN=self.SECRET + "\n")
        self.assertEqual(run.returncode, 0, run.err)
        self.assertEqual(self.authorisations(), {(False, f"Bearer {self.SECRET}"), (True, None)})
        self.assertNotIn(self.SECRET, run.out + run.err)

    def test_comes_from_a_file(self):
        self.hub.token = self.SECRET
        (self.root / "token").write_text(self.SECRET + "\n")
        self.assertEqual(self.pull().returncode, 0)
        (self.root / "token").rename(self.root / "other")
        self.fails("401", "--verify", code=2)
        self.assertEqual(self.pull(HF_TOKEN_PATH=str(self.root / "other")).returncode, 0)
        self.fails("401", HF_TOKEN=self.SECRET, HF_HUB_DISABLE_IMPLICIT_TOKEN="1", code=2)

    def test_that_is_no_word_is_refused_unseen(self):
        run = self.fails("one printable word", code=2, HF_TOKEN=self.SECRET + "\r\nX-Evil: 1")
        self.assertNotIn(self.SECRET, run.err)
        self.assertEqual(self.hub.log, [])


class Refusals(Pull):
    def test_statuses(self):
        for code, phrase, exit_code in ((401, "wants a token", 2), (403, "may not read", 2), (404, "no such model", 2),
                                        (418, "answered 418", 1), (500, "tried 3 times", 1), (503, "503", 1)):
            self.hub.rules = []
            self.hub.rule("GET", "/api/", status(code))
            self.fails(phrase, "--retries", 2, code=exit_code)
        self.hub.rules = []
        self.fails("no such revision", name="org/name@nowhere", code=2)
        self.fails("no such model", name="org/nothing", code=2)
        self.assertFalse(self.cache.exists())

    def test_a_passing_trouble_is_tried_again(self):
        for code in (429, 500, 502, 503, 504):
            self.hub.rule("GET", "", status(code), times=1)
        self.assertEqual(self.pull().returncode, 0)
        self.assert_whole()

    def test_retry_after_is_honoured(self):
        self.hub.rule("GET", "/api/", status(429, {"Retry-After": "1"}), times=1)
        start = time.monotonic()
        run = self.pull()
        self.assertEqual(run.returncode, 0)
        self.assertGreater(time.monotonic() - start, 1)
        self.assertIn("too many requests", run.err)
        self.hub.rule("GET", "/api/", status(429, {"Retry-After": "86400"}))
        self.fails("asks to be left alone for 24h")

    def test_names(self):
        for name in ("name", "../name", "org/../../x", "org/name@../../x", "org/name@", "/etc/passwd", "org\\x/name"):
            self.fails("must be", name=name, code=2)
        self.assertEqual(self.hub.log, [])

    def test_pickles_and_many_ggufs(self):
        self.hub.add("org/pickles", {"config.json": b"{}", "pytorch_model.bin": b"x"})
        self.fails("pickle", name="org/pickles", code=2)
        self.hub.add("org/ggufs", {"a.gguf": b"x", "b.gguf": b"y"})
        self.fails("2 GGUF files", name="org/ggufs", code=2)
        self.assertEqual(self.pull(name="org/ggufs/b.gguf").returncode, 0)

    def test_endpoints(self):
        self.fails("must be https", HF_ENDPOINT="http://192.0.2.1", code=2)
        self.fails("must be an address", HF_ENDPOINT="huggingface.co", code=2)
        self.fails("cannot connect", "--retries", 1, HF_ENDPOINT="http://127.0.0.1:1")
        self.fails("not found", "--retries", 0, HF_ENDPOINT="https://nowhere.invalid")

    def test_too_large_for_the_disk(self):
        tree = self.repo.tree()
        for entry in tree:
            if "lfs" in entry:
                entry["lfs"]["size"] = 1 << 49
        self.hub.rule("GET", "/tree/", lambda h: h.reply_json(tree) or True)
        run = self.fails("512.0 TiB more in")
        self.assertIn("64.0 MiB are to stay free there", run.err)
        self.assert_nothing_in_place()

    def test_listings_that_lie(self):
        good = {"type": "file", "size": 1, "oid": "0" * 40}
        names = ("../../escape", "/etc/cron.d/x", "a/../../x", "a\\b", "a\0b", "refs/../x", "a//b", "", "a/" * 40 + "b")
        for name in names:
            self.hub.rules = []
            self.hub.rule("GET", "/tree/", lambda h, n=name: h.reply_json([{**good, "path": n}]) or True)
            self.fails("no plain relative path", code=2)
        for value, phrase in (([{**good, "path": "x", "oid": "../../x"}], "40 hexadecimal"),
                              ([{**good, "path": "x", "size": -5}], "number of bytes"),
                              ([{**good, "path": "x"}] * 2, "twice"),
                              ([{**good, "path": "x"}, {**good, "path": "x/y"}], "as a folder"),
                              ({"error": "x"}, "must be a list"), ([[[[1]]]], "must be an object")):
            self.hub.rules = []
            self.hub.rule("GET", "/tree/", lambda h, v=value: h.reply_json(v) or True)
            self.fails(phrase, code=2)
        self.hub.rules = []
        self.hub.rule("GET", "/revision/", lambda h: h.reply_json({"sha": "../../../etc"}) or True)
        self.fails("a commit of 40", code=2)
        self.assertEqual(list(self.root.iterdir()), [])

    def test_huge_answers(self):
        def headers(handler):
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
            for _ in range(200):
                handler.wfile.write(b"a" * 1_000_000)
            return True

        def listing(handler):
            handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n[")
            for _ in range(200):
                handler.wfile.write(b'"' + b"a" * 1_000_000 + b'",')
            return True

        def deep(handler):
            handler.reply(200, b"[" * 1_000_000)
            return True

        for action, phrase in ((headers, "headers are too large"), (listing, "at most 64.0 MiB"), (deep, "deep")):
            self.hub.rules = []
            self.hub.rule("GET", "/api/", action)
            self.fails(phrase, code=2)

    def test_what_is_not_http(self):
        for text in (b"SSH-2.0-OpenSSH\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
                     b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 0\r\n\r\n"):
            self.hub.rules = []
            self.hub.rule("GET", "/api/", lambda h, t=text: h.wfile.write(t) or True)
            self.fails("the answer", code=2)


class Bodies(Pull):
    """What happens to the bytes of the weights on their way."""

    WAY = "signature="

    def test_a_broken_connection_goes_on_where_it_was(self):
        self.hub.rule("GET", self.WAY, break_off(1_100_000, WEIGHTS), times=2)
        self.assertEqual(self.pull("--retries", 1).returncode, 0)
        self.assert_whole()
        ranges = [h.get("Range") for m, p, h, _ in self.hub.log if self.WAY in p]
        self.assertEqual(ranges, [None, "bytes=1100000-", "bytes=2200000-"])

    def test_a_server_that_gives_little_is_given_up(self):
        self.hub.rule("GET", self.WAY, break_off(10, WEIGHTS))
        self.fails("broke off", "--retries", 3)
        self.assert_nothing_in_place()
        self.assertEqual(self.blob("model.safetensors").with_suffix(".incomplete").read_bytes(), WEIGHTS[:40])

    def test_ranges_that_are_ignored_begin_anew(self):
        self.hub.rule("GET", self.WAY, break_off(2_000_000, WEIGHTS), times=1)
        self.hub.rule("GET", self.WAY, lambda h: h.reply(200, WEIGHTS) or True)
        self.assertEqual(self.pull().returncode, 0)
        self.assert_whole()

    def test_another_range_than_asked_begins_anew(self):
        wrong = {"Content-Range": f"bytes 5-{len(WEIGHTS) - 1}/{len(WEIGHTS)}"}
        self.hub.rule("GET", self.WAY, break_off(2_000_000, WEIGHTS), times=1)
        self.hub.rule("GET", self.WAY, lambda h: h.reply(206, WEIGHTS[5:], wrong) or True, times=1)
        self.assertEqual(self.pull().returncode, 0)
        self.assert_whole()

    def test_sizes_that_lie(self):
        for body, phrase in ((WEIGHTS[:-1], "2999999 bytes come"), (WEIGHTS + b"x", "3000001 bytes come")):
            self.hub.rules = []
            self.hub.rule("GET", self.WAY, lambda h, b=body: h.reply(200, b) or True)
            self.fails(phrase)
        chunks = b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in (WEIGHTS, b"more")) + b"0\r\n\r\n"
        head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        self.hub.rules = []
        self.hub.rule("GET", self.WAY, lambda h: h.wfile.write(head + chunks) or True)
        self.fails("more bytes come than its 3000000")
        # All of its bytes may have come before the one too many.
        self.blob("model.safetensors").with_suffix(".incomplete").unlink(missing_ok=True)
        self.hub.rules = []
        self.hub.rule("GET", self.WAY, lambda h: h.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n" + WEIGHTS[:9]) or True)
        run = self.fails("ended 2.9 MiB before the end", "--retries", 1)
        self.assertIn("'model.safetensors' of org/name", run.err)
        self.assert_nothing_in_place()

    def test_chunks_and_no_length_are_fine(self):
        chunks = b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in (WEIGHTS[:9], WEIGHTS[9:])) + b"0\r\n\r\n"
        head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        self.hub.rule("GET", self.WAY, lambda h: h.wfile.write(head + chunks) or True)
        self.hub.rule("GET", "config.json", lambda h: h.wfile.write(b"HTTP/1.0 200 OK\n\n" + FILES["config.json"]) or True)
        self.assertEqual(self.pull().returncode, 0)
        self.assert_whole()

    def test_wrong_bytes_are_thrown_away(self):
        for part, name in ((self.WAY, "model.safetensors"), ("config.json", "config.json")):
            self.hub.rules = []
            self.hub.rule("GET", part, lambda h, b=b"x" + FILES[name][1:]: h.reply(200, b) or True)
            self.fails("checksum")
            self.assert_nothing_in_place()
            self.assertFalse(self.blob(name).exists())
            self.assertFalse(self.blob(name).with_suffix(".incomplete").exists())
            shutil.rmtree(self.cache)

    def test_a_spoilt_part_is_fetched_anew(self):
        (self.folder / "blobs").mkdir(parents=True)
        for part in (b"spoilt", WEIGHTS + b"too long"):
            self.blob("model.safetensors").with_suffix(".incomplete").write_bytes(part)
            self.assertEqual(self.pull().returncode, 0)
            self.assert_whole()
            self.blob("model.safetensors").unlink()

    def test_a_file_that_changes_between_two_tries(self):
        def changed(handler):
            other = {"X-Repo-Commit": self.repo.commit, "X-Linked-Etag": '"' + "e" * 64 + '"',
                     "X-Linked-Size": "9", "Location": f"{self.hub.storage_address}/x"}
            handler.reply(302, b"", other)
            return True

        self.hub.rule("GET", self.WAY, break_off(2_000_000, WEIGHTS), times=1)
        self.hub.rule("GET", "resolve/" + self.repo.commit + "/model", lambda h: False, times=1)
        self.hub.rule("GET", "resolve/" + self.repo.commit + "/model", changed)
        self.fails("another one than it listed")
        self.assert_nothing_in_place()
        self.hub.rules = []
        self.assertEqual(self.pull().returncode, 0)
        self.assert_whole()

    def test_another_commit_than_asked_for(self):
        wrong = {"X-Repo-Commit": "f" * 40}
        self.hub.rule("GET", "/config.json", lambda h: h.reply(200, FILES["config.json"], wrong) or True)
        self.fails("serves it of commit")

    def test_a_server_that_drips(self):
        def drip(handler):
            handler.send_response(200)
            handler.send_header("Content-Length", str(len(WEIGHTS)))
            handler.end_headers()
            for i in range(200):
                handler.wfile.write(WEIGHTS[i:i + 1])
                time.sleep(0.05)
            return True

        def silent(handler):
            time.sleep(2)
            return True

        self.hub.rule("GET", self.WAY, drip)
        self.fails("too slow", "--timeout", 0.4, "--retries", 1)
        self.hub.rules = []
        self.hub.rule("GET", "/api/", silent)
        self.fails("sent nothing", "--timeout", 0.3, "--retries", 0)


class Redirects(Pull):
    def test_relative_and_renamed(self):
        def moved(handler):
            handler.reply(307, b"", {"Location": handler.path.replace("old/name", "org/name")})
            return True

        self.hub.rule("GET", "old/name", moved)
        run = self.pull(name="old/name")
        self.assertEqual(run.returncode, 0, run.err)
        self.assertTrue((self.cache / "models--old--name/snapshots" / self.repo.commit / "config.json").exists())

    def test_bad_ones(self):
        for location, phrase, code in (("http://192.0.2.1/x", "not encrypted", 1), ("ftp://x/", "no address", 2),
                                       ("/a b", "no address", 2), (None, "not where to", 2)):
            self.hub.rules = []
            headers = {"Location": location} if location else {}
            self.hub.rule("GET", "/api/", status(302, headers))
            self.fails(phrase, code=code)
        self.hub.rules = []
        self.hub.rule("GET", "/api/", lambda h: h.reply(302, b"", {"Location": h.path}) or True)
        self.fails("without an end")

    def test_a_signed_address_that_ran_out_is_asked_for_again(self):
        self.hub.rule("GET", "signature=", status(403), times=2)
        self.assertEqual(self.pull().returncode, 0)
        self.assert_whole()


class Encrypted(Pull):
    def setUp(self):
        super().setUp()
        self.certificate = self.root / "localhost.pem"
        key = self.root / "key.pem"
        made = subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-addext",
             "subjectAltName=DNS:localhost", "-days", "2", "-keyout", str(key), "-out", str(self.certificate)],
            capture_output=True)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.certificate.write_text(self.certificate.read_text() + key.read_text())
        plain = self.hub
        self.hub = Hub(self.certificate, "localhost")
        self.addCleanup(self.hub.__exit__)
        self.hub.add("org/name", FILES)
        self.hub.plain = plain.address
        self.environment["HF_ENDPOINT"] = self.hub.address

    def test_with_a_certificate_that_is_trusted(self):
        run = self.pull(SSL_CERT_FILE=str(self.certificate))
        self.assertEqual(run.returncode, 0, run.err)
        self.assert_whole()

    def test_with_one_that_is_not(self):
        self.fails("is not trusted", code=2)
        self.environment["HF_ENDPOINT"] = self.hub.address.replace("localhost", "127.0.0.1")
        self.fails("matches target host name", SSL_CERT_FILE=str(self.certificate), code=2)
        self.assertEqual(self.hub.log, [])

    def test_never_falls_back_to_plain(self):
        self.hub.rule("GET", "/api/", lambda h: h.reply(302, b"", {"Location": self.hub.plain + h.path}) or True)
        self.fails("not encrypted", SSL_CERT_FILE=str(self.certificate))

    def test_a_broken_connection_goes_on(self):
        self.hub.rule("GET", "signature=", break_off(1_100_000, WEIGHTS), times=2)
        self.assertEqual(self.pull("--retries", 1, SSL_CERT_FILE=str(self.certificate)).returncode, 0)
        self.assert_whole()


class Models(Pull):
    """hf:ORG/NAME where a command takes a model."""

    def setUp(self):
        super().setUp()
        golden = pathlib.Path(os.environ["HEARTH_SOURCE"]) / "tests/golden/models/llama-tied"
        files = {name: (golden / name).read_bytes() for name in ("config.json", "model.safetensors")}
        self.tiny = self.hub.add("org/tiny", files)

    def run_hearth(self, *words, **more):
        process = self.start(*words, **more)
        out, err = process.communicate(timeout=60)
        return process.returncode, out.decode(), err.decode()

    def test_is_fetched_once_and_then_taken_from_the_cache(self):
        code, out, err = self.run_hearth("inspect", "hf:org/tiny", "--json")
        self.assertEqual(code, 0, err)
        self.assertIn("not in the cache: fetching it", err)
        self.assertEqual(json.loads(out)["schema"], "hearth.inspect/1")
        before = len(self.hub.log)
        code, out, err = self.run_hearth("inspect", f"hf:org/tiny@{self.tiny.commit}", HF_HUB_OFFLINE="1")
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(self.run_hearth("generate", "hf:org/tiny", "--ids", "1,2", "--max-tokens", "2", "--quiet")[0], 0)
        self.assertEqual(len(self.hub.log), before)

    def test_of_a_recipe(self):
        recipe = self.root / "r.yaml"
        recipe.write_text("model: {from: 'hf:org/tiny'}\ndata: {train: x.jsonl}\n")
        code, out, err = self.run_hearth("train", recipe, "--print-config")
        self.assertEqual(code, 0, err)
        self.assertIn(f"models--org--tiny/snapshots/{self.tiny.commit}", out)
        self.assertIn("hf:org/tiny", out)

    def test_that_is_not_there(self):
        for model, phrase, more in (("hf:org/tiny", "is not in the cache (every file is missing)", {"HF_HUB_OFFLINE": "1"}),
                                    ("hf:tiny", "must be named ORG/NAME", {}), ("hf:org/none", "no such model", {}),
                                    ("hf:../../x", "must be named ORG/NAME", {})):
            code, out, err = self.run_hearth("inspect", model, "--quiet", **more)
            self.assertEqual((code, out), (2, ""), err)
            self.assertIn(phrase, err)

    def test_half_of_one_is_not_used(self):
        index = {"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}
        files = {"config.json": b"{}", "model-00001-of-00002.safetensors": b"x", "model-00002-of-00002.safetensors": b"y",
                 "model.safetensors.index.json": json.dumps(index).encode()}
        self.hub.add("org/half", files)
        self.pull("--exclude", "*2-of*", name="org/half")
        code, _, err = self.run_hearth("inspect", "hf:org/half", HF_HUB_OFFLINE="1")
        self.assertEqual(code, 2)
        self.assertIn("model-00002-of-00002.safetensors is missing", err)


class Interrupted(Pull):
    def slow(self):
        """The weights in small pieces; returns once some are there."""
        def slowly(handler):
            first = int(handler.headers.get("Range", "bytes=0-")[6:].split("-")[0])
            handler.send_response(206 if first else 200)
            if first:
                handler.send_header("Content-Range", f"bytes {first}-{len(WEIGHTS) - 1}/{len(WEIGHTS)}")
            handler.send_header("Content-Length", str(len(WEIGHTS) - first))
            handler.end_headers()
            for at in range(first, len(WEIGHTS), 100_000):
                handler.wfile.write(WEIGHTS[at:at + 100_000])
                time.sleep(0.1)
            return True

        self.hub.rule("GET", "signature=", slowly)
        process = self.start("pull", "org/name")
        part = self.blob("model.safetensors").with_suffix(".incomplete")
        end = time.monotonic() + 20
        while time.monotonic() < end and not (part.exists() and part.stat().st_size > 300_000):
            time.sleep(0.02)
        return process, part

    def check(self, number, code):
        process, part = self.slow()
        process.send_signal(number)
        _, err = process.communicate(timeout=20)
        self.assertEqual(process.returncode, code, err)
        self.assert_nothing_in_place()
        there = part.stat().st_size
        self.assertGreater(there, 300_000)
        self.assertEqual(part.read_bytes(), WEIGHTS[:there])
        self.hub.rules = []
        document = json.loads(self.pull("--json").out)
        self.assert_whole()
        self.assertLess(document["fetched_bytes"], sum(map(len, FILES.values())) - there)
        return err.decode()

    def test_by_ctrl_c(self):
        self.assertIn("goes on from it", self.check(signal.SIGINT, 130))

    def test_by_kill_9(self):
        self.check(signal.SIGKILL, -9)


if __name__ == "__main__":
    unittest.main()
