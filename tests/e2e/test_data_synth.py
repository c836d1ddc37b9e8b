"""hearth data synth: the same bytes on every machine, whatever the flags."""
import hashlib
import os
import subprocess
import unittest

HEARTH = os.environ["HEARTH_BINARY"]

# What every platform must print for --seed 1.
PINNED = {
    ("stories", 1000): "a2b6a1550192023f56b0b4b229e5ab5607cea6e12cb1e18f53e9d8f658baa496",
    ("arith", 1000): "e85efca81562d4b0ce49cf8073f7dc7fc9ab88792342b20a3556ea49f2571e78",
    ("tools", 1000): "3624d683cfd502600580e832a1fa1215f92b1c48bfb9a55a793e55ae1c149bc7",
}


def synth(*words):
    return subprocess.run([HEARTH, "data", "synth", *words], capture_output=True)


class DataSynth(unittest.TestCase):
    def test_bytes_are_pinned(self):
        for (kind, count), digest in PINNED.items():
            run = synth("--kind", kind, "--n", str(count), "--seed", "1")
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertEqual(run.stdout.count(b"\n"), count)
            self.assertEqual(hashlib.sha256(run.stdout).hexdigest(), digest, kind)

    def test_fewer_records_are_the_first_ones(self):
        few, many = (synth("--kind", "tools", "--n", n, "--seed", "9").stdout for n in ("3", "30"))
        self.assertTrue(many.startswith(few))
        self.assertEqual(synth("--kind", "tools", "--n", "0").stdout, b"")

    def test_threads_and_locale_do_not_matter(self):
        words = ["--kind", "stories", "--n", "50", "--seed", "2"]
        plain = synth(*words).stdout
        self.assertEqual(synth(*words, "--threads", "1").stdout, plain)
        run = subprocess.run([HEARTH, "data", "synth", *words], capture_output=True,
                             env={**os.environ, "LC_ALL": "de_DE.UTF-8"})
        self.assertEqual(run.stdout, plain)

    def test_wrong_words_are_refused(self):
        self.assertEqual(synth("--kind", "poems").returncode, 2)
        self.assertEqual(synth("--n", "-1").returncode, 2)


if __name__ == "__main__":
    unittest.main()
