"""The command line as a person meets it: right spellings, wrong ones, --json."""
import json
import os
import subprocess
import unittest

HEARTH = os.environ["HEARTH_BINARY"]


def hearth(*words, **env):
    return subprocess.run([HEARTH, *words], capture_output=True, text=True, env={**os.environ, **env})


class Cli(unittest.TestCase):
    def test_help_lists_commands_and_each_has_an_example(self):
        help_text = hearth("help").stdout
        names = [line.split()[0] for line in help_text.splitlines() if line.startswith("  ")]
        self.assertIn("doctor", names)
        for line in help_text.splitlines():
            if not line.startswith("  "):
                continue
            words = line[2:20].split()
            run = hearth(*words, "--help")
            self.assertEqual(run.returncode, 0, words)
            self.assertIn("Examples:", run.stdout, words)
        self.assertEqual(hearth("help", "doctor").stdout, hearth("doctor", "--help").stdout)

    def test_a_group_lists_its_commands(self):
        names = [line[2:20].split() for line in hearth("help").stdout.splitlines() if line.startswith("  ")]
        groups = {words[0] for words in names if len(words) == 2}
        self.assertGreaterEqual(groups, {"data", "profile", "tokenizer", "export", "eval"})
        for group in groups:
            for words in (["help", group], [group, "--help"], [group, "-h"]):
                run = hearth(*words)
                self.assertEqual((run.returncode, run.stderr), (0, ""), words)
                listed = [line[2:20].split() for line in run.stdout.splitlines() if line.startswith("  ")]
                self.assertEqual(listed, [name for name in names if name[0] == group and len(name) == 2], words)
        self.check_usage_error(["data"], "one of: data prepare, data inspect, data synth")
        self.check_usage_error(["data", "prepar", "--help"], "one of: data prepare")

    def test_version_names_mlx_isa_and_build(self):
        run = hearth("--version")
        self.assertEqual(run.returncode, 0)
        self.assertRegex(run.stdout, r"^hearth \d+\.\d+\.\d+ \(MLX 0\.\d+\.\d+, instruction set \w+, \w+ build, ")

    def check_usage_error(self, words, *parts):
        run = hearth(*words)
        self.assertEqual(run.returncode, 2, run.stderr)
        self.assertEqual(run.stdout, "")
        for part in parts:
            self.assertIn(part, run.stderr.splitlines()[0])

    def test_wrong_words_get_the_nearest_right_one(self):
        self.check_usage_error(["frobnicate"], "there is no command 'frobnicate'")
        self.check_usage_error(["docter"], "did you mean 'doctor'?")
        self.check_usage_error(["doctor", "--jsn"], "'--jsn' is not known", "did you mean '--json'?")
        self.check_usage_error(["doctor", "too", "many"], "'too'")
        self.check_usage_error(["doctor", "--threads", "x"], "--threads")
        self.check_usage_error(["doctor", "--threads", "-3"], "--threads must be from 0 to 4096")
        self.check_usage_error(["bench", "opps"], "one of")
        self.check_usage_error(["bench", "--filter", "("], "regular expression")
        self.check_usage_error(["bench", "--filter", "no such case"], "finds no case")
        self.check_usage_error(["completion", "fish"], "bash or zsh")

    def test_errors_with_json_are_one_document(self):
        run = hearth("doctor", "--jsn", "--json")
        self.assertEqual(run.returncode, 2)
        document = json.loads(run.stdout)
        self.assertEqual(document["schema"], "hearth.error/1")
        self.assertIn("--jsn", document["error"])
        self.assertIn("hint", document)

    def test_environment_is_checked_like_flags(self):
        run = hearth("doctor", HEARTH_ISA="sse9")
        self.assertEqual(run.returncode, 2)
        self.assertIn("generic", run.stderr)
        self.assertEqual(hearth("doctor", HEARTH_DEVICE="tpu").returncode, 2)
        self.assertEqual(hearth("doctor", HEARTH_THREADS="many").returncode, 2)
        self.assertEqual(hearth("doctor", "--device", "cpu", HEARTH_DEVICE="tpu").returncode, 0)

    def test_a_forced_isa_is_live(self):
        usable = json.loads(hearth("doctor", "--json").stdout)["isa"]["usable"]
        for isa in usable:
            chosen = json.loads(hearth("doctor", "--json", HEARTH_ISA=isa).stdout)["isa"]["chosen"]
            self.assertEqual(chosen, isa)
            self.assertIn(f"instruction set {isa},", hearth("--version", HEARTH_ISA=isa).stdout)

    def test_completion_is_a_script_the_shell_takes(self):
        script = hearth("completion", "bash").stdout
        probe = script + 'COMP_WORDS=(hearth doc); COMP_CWORD=1; _hearth; echo "${COMPREPLY[@]}"'
        out = subprocess.run(["bash", "-c", probe], capture_output=True, text=True)
        self.assertEqual(out.stdout.strip(), "doctor", out.stderr)
        probe = script + f'COMP_WORDS=({HEARTH} doctor --meas); COMP_CWORD=2; _hearth; echo "${{COMPREPLY[@]}}"'
        out = subprocess.run(["bash", "-c", probe], capture_output=True, text=True)
        self.assertEqual(out.stdout.strip(), "--measure", out.stderr)

    def test_no_color_and_no_terminal_mean_no_escape_codes(self):
        self.assertNotIn("\x1b", hearth("frobnicate").stderr)

    def test_a_full_disk_is_an_error(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full here")
        with open("/dev/full", "w") as full:
            run = subprocess.run([HEARTH, "doctor"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(run.returncode, 1)
        self.assertIn("No space left", run.stderr)

    def test_bench_rows_follow_the_contract(self):
        run = hearth("bench", "base", "--filter", "Philox", "--seconds", "0.05", "--json", "--quiet")
        self.assertEqual(run.returncode, 0, run.stderr)
        document = json.loads(run.stdout)
        self.assertEqual(document["schema"], "hearth.bench/1")
        (row,) = document["rows"]
        for key in ("case", "threads", "median_ms", "spread", "rate", "unit"):
            self.assertIn(key, row)
        self.assertNotIn("vs_peer", row)


if __name__ == "__main__":
    unittest.main()
