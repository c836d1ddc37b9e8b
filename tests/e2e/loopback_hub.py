"""A Hugging Face hub on 127.0.0.1 for tests: repositories in memory, a storage on a second port that large files are
redirected to, and rules by which it misbehaves.

    with Hub() as hub:
        repo = hub.add("org/name", {"config.json": b"{}", "model.safetensors": weights})
        hub.rule("GET", "model.safetensors", break_off(1000), times=1)
"""
import hashlib
import http.server
import json
import ssl
import threading
import urllib.parse


def git_blob_id(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class Repo:
    def __init__(self, name, files):
        self.name, self.files = name, dict(files)
        self.commit = hashlib.sha1(name.encode() + repr(sorted(files.items())).encode()).hexdigest()
        self.revisions = {"main": self.commit}

    def is_large(self, name):
        return name.endswith((".safetensors", ".gguf", ".bin"))

    def etag(self, name):
        data = self.files[name]
        return hashlib.sha256(data).hexdigest() if self.is_large(name) else git_blob_id(data)

    def tree(self):
        out = []
        for name, data in self.files.items():
            entry = {"type": "file", "path": name, "size": len(data), "oid": git_blob_id(data)}
            if self.is_large(name):
                entry["lfs"] = {"oid": self.etag(name), "size": len(data), "pointerSize": 134}
            out.append(entry)
        return out


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.answer()

    def do_HEAD(self):
        self.answer()

    def answer(self):
        hub, storage = self.server.hub, self.server.storage
        self.close_connection = True
        if self.path == "/log":
            return self.reply_json([(method, path) for method, path, _, _ in hub.log])
        hub.log.append((self.command, self.path, dict(self.headers), storage))
        try:
            rule = hub.take_rule(self.command, self.path)
            if rule and rule(self):
                return
            self.answer_storage() if storage else self.answer_hub()
        except (BrokenPipeError, ConnectionResetError):
            pass

    def reply(self, status, body=b"", headers=None, length=None):
        self.send_response(status)
        for key, value in (headers or {}).items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def reply_json(self, value, headers=None):
        self.reply(200, json.dumps(value).encode(), {"Content-Type": "application/json", **(headers or {})})

    def reply_data(self, data, headers=None):
        wanted = self.headers.get("Range")
        if wanted and wanted.startswith("bytes="):
            first = int(wanted[6:].split("-")[0])
            if first >= len(data):
                return self.reply(416, b"", {"Content-Range": f"bytes */{len(data)}"})
            ranged = {"Content-Range": f"bytes {first}-{len(data) - 1}/{len(data)}", **(headers or {})}
            return self.reply(206, data[first:], ranged)
        self.reply(200, data, headers)

    def refuse(self, status, code):
        self.reply(status, b'{"error":"no"}', {"X-Error-Code": code})

    def answer_storage(self):
        data = self.server.hub.stored.get(urllib.parse.urlsplit(self.path).path[1:])
        self.reply_data(data) if data is not None else self.reply(404)

    def answer_hub(self):
        hub = self.server.hub
        parts = [urllib.parse.unquote(p) for p in urllib.parse.urlsplit(self.path).path.split("/")[1:]]
        api = parts[:2] == ["api", "models"]
        repo = hub.repos.get("/".join(parts[2:4] if api else parts[:2]))
        token = self.headers.get("Authorization", "")
        if repo is None or (hub.token and token != f"Bearer {hub.token}"):
            return self.refuse(401, "RepoNotFound")
        rest = parts[4:] if api else parts[2:]
        commit = repo.revisions.get(rest[1], rest[1] if rest[1] == repo.commit else None)
        if commit is None:
            return self.refuse(404, "RevisionNotFound")
        if rest[0] == "revision":
            names = [{"rfilename": name} for name in repo.files]
            return self.reply_json({"id": repo.name, "modelId": repo.name, "sha": commit, "siblings": names})
        if rest[0] == "tree":
            return self.reply_json(repo.tree()) if hub.trees else self.refuse(404, "EntryNotFound")
        self.answer_file(repo, commit, "/".join(rest[2:]))

    def answer_file(self, repo, commit, name):
        hub = self.server.hub
        if name not in repo.files:
            return self.refuse(404, "EntryNotFound")
        data, etag = repo.files[name], repo.etag(name)
        headers = {"X-Repo-Commit": commit, "ETag": f'"{etag}"'}
        if not repo.is_large(name):
            return self.reply_data(data, headers)
        hub.stored[etag] = data
        headers.update({"X-Linked-Etag": f'"{etag}"', "X-Linked-Size": str(len(data)), "ETag": '"pointer"'})
        self.reply(302, b"over there", {**headers, "Location": f"{hub.storage_address}/{etag}?signature=abc"})


class Hub:
    def __init__(self, certificate=None, host="127.0.0.1"):
        """certificate: a PEM file with certificate and key, for https."""
        self.certificate = certificate
        self.repos, self.stored, self.rules, self.log = {}, {}, [], []
        self.token, self.trees = None, True
        self.lock = threading.Lock()
        self.servers = [self.serve(False), self.serve(True)]
        scheme = "https" if certificate else "http"
        self.address, self.storage_address = (f"{scheme}://{host}:{s.server_address[1]}" for s in self.servers)

    def serve(self, storage):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.hub, server.storage, server.daemon_threads = self, storage, True
        if self.certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return server

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for server in self.servers:
            server.shutdown()
            server.server_close()

    def add(self, name, files):
        self.repos[name] = Repo(name, files)
        return self.repos[name]

    def rule(self, method, part, action, times=None):
        """action(handler) for requests of this method whose path contains part; True when it answered."""
        self.rules.append([method, part, action, times])

    def take_rule(self, method, path):
        with self.lock:
            for rule in self.rules:
                if rule[0] == method and rule[1] in path and rule[3] != 0:
                    if rule[3] is not None:
                        rule[3] -= 1
                    return rule[2]
        return None

    def paths(self, method="GET", part=""):
        return [path for m, path, _, _ in self.log if m == method and part in path]


def status(code, headers=None):
    def action(handler):
        handler.reply(code, b"trouble", headers)
        return True
    return action


def break_off(after, data):
    """Says the whole length, sends this many bytes of what was asked for."""
    def action(handler):
        first = int(handler.headers.get("Range", "bytes=0-")[6:].split("-")[0])
        handler.send_response(206 if first else 200)
        if first:
            handler.send_header("Content-Range", f"bytes {first}-{len(data) - 1}/{len(data)}")
        handler.send_header("Content-Length", str(len(data) - first))
        handler.end_headers()
        handler.wfile.write(data[first:first + after])
        return True
    return action
