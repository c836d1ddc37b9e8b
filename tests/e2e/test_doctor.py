"""hearth doctor: what it says, and what it refuses."""
import json
import os
import platform
import subprocess
import tempfile
import unittest

HEARTH = os.environ["HEARTH_BINARY"]


def hearth(*words, **env):
    return subprocess.run([HEARTH, *words], capture_output=True, text=True, env={**os.environ, **env})


class Doctor(unittest.TestCase):
    def test_json_has_its_documented_parts(self):
        run = hearth("doctor", "--json")
        self.assertEqual(run.returncode, 0, run.stderr)
        d = json.loads(run.stdout)
        self.assertEqual(d["schema"], "hearth.doctor/1")
        for part in ("os", "cpu", "memory", "devices", "device", "isa", "profile", "mlx", "warnings"):
            self.assertIn(part, d)
        self.assertEqual(d["cpu"]["logical_cores"], os.cpu_count())
        self.assertEqual(d["devices"][-1]["device"], "cpu")
        self.assertLessEqual(d["memory"]["safe_bytes"], d["memory"]["total_bytes"])
        self.assertEqual(d["isa"]["chosen"], os.environ.get("HEARTH_ISA", d["isa"]["usable"][-1]))

    def test_text_says_the_same(self):
        d = json.loads(hearth("doctor", "--json").stdout)
        text = hearth("doctor").stdout
        for part in (d["cpu"]["model"], d["profile"]["key"], d["isa"]["chosen"], d["mlx"]):
            self.assertIn(part, text)

    @unittest.skipUnless(platform.system() == "Linux", "Linux has no Metal")
    def test_a_device_that_is_not_there_is_an_error_that_lists_what_is(self):
        run = hearth("doctor", "--device", "metal")
        self.assertEqual(run.returncode, 2)
        self.assertEqual(len(run.stderr.splitlines()), 1)
        self.assertIn("it has", run.stderr)
        self.assertIn("cpu", run.stderr)

    def test_a_users_profile_is_used_and_a_broken_one_is_named(self):
        d = json.loads(hearth("doctor", "--json").stdout)
        with tempfile.TemporaryDirectory() as config:
            os.mkdir(f"{config}/profiles")
            path = f"{config}/profiles/mine.yaml"
            with open(path, "w") as f:
                f.write(f'profiles:\n  - key: mine\n    describes: my box\n    match: {{chip: "{d["cpu"]["model"]}"}}\n')
            mine = json.loads(hearth("doctor", "--json", HEARTH_CONFIG=config).stdout)
            self.assertEqual(mine["profile"]["key"], "mine")
            for text, part in (
                ("profiles:\n  - key: mine\n    descibes: x\n", "mine.yaml:3: there is no key 'descibes'; did you mean 'describes'?"),
                ("profiles:\n  - key: mine\n", "mine.yaml:2: key 'describes' must be given"),
                ("profiles: [\n", "mine.yaml:"),
                ("profiles:\n  - {key: a, describes: b, match: {os: linux}}\n  - {key: c, describes: d, match: {os: linux}}\n", "mine.yaml:3: match of 'c'"),
            ):
                with open(path, "w") as f:
                    f.write(text)
                run = hearth("doctor", HEARTH_CONFIG=config)
                self.assertEqual(run.returncode, 2, text)
                self.assertEqual(len(run.stderr.splitlines()), 1)
                self.assertIn(part, run.stderr)

    def test_stored_peaks_are_shown_and_a_damaged_record_is_not_fatal(self):
        with tempfile.TemporaryDirectory() as cache:
            with open(f"{cache}/peaks.json", "w") as f:
                f.write("{ not json")
            run = hearth("doctor", HEARTH_CACHE=cache)
            self.assertEqual(run.returncode, 0)
            self.assertIn("not measured yet", run.stdout)
            self.assertIn("warning", run.stderr)


if __name__ == "__main__":
    unittest.main()
