"""Starts that are cut short, by a kill or by a full disk, leave a run that goes on or can be begun again."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from train_case import HEARTH, TrainCase, hearth


class CutShort(TrainCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        done = hearth("train", cls.recipe, "-o", cls.root / "whole", "train.steps=4", "--threads", 1)
        assert done.returncode == 0, done.stderr

    def assert_whole_model(self, run):
        """The files of model/ are those of a run that was left alone, and text comes out of it."""
        self.assertEqual(sorted(p.name for p in (run / "model").iterdir()),
                         sorted(p.name for p in (self.root / "whole/model").iterdir()))
        for file in (self.root / "whole/model").glob("tokenizer*"):
            self.assertEqual(file.read_bytes(), (run / "model" / file.name).read_bytes(), file.name)
        done = hearth("generate", run, "-p", "Once", "--raw", "--max-tokens", 2)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_resume_puts_right_what_a_kill_left_of_the_tokenizer(self):
        for name, damage in {"gone": lambda f: f.unlink(), "empty": lambda f: f.write_bytes(b""),
                             "cut": lambda f: f.write_bytes(f.read_bytes()[:100])}.items():
            shutil.copytree(self.root / "whole", self.root / name)
            for file in (self.root / name / "model").glob("tokenizer*"):
                damage(file)
            (self.root / name / "model/tokenizer.json.tmp-1-0").write_text("{")
            self.resume(name)
            self.assert_whole_model(self.root / name)
        shutil.rmtree(self.root / "gone/model")
        self.resume("gone", "train.steps=5")
        self.assert_whole_model(self.root / "gone")

    def test_a_run_without_its_tokenizer_says_so(self):
        self.train("bare", "train.steps=1")
        for file in (self.root / "bare/model").glob("tokenizer*"):
            file.unlink()
        done = hearth("generate", self.root / "bare", "-p", "Once", "--raw")
        self.assertEqual(done.returncode, 2)
        self.assert_one_line(done, "bare/model must hold the run's tokenizer", "--resume")

    def test_a_disk_that_is_full_from_the_start(self):
        point = pathlib.Path(tempfile.mkdtemp())
        mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32k", "none", point], capture_output=True, text=True)
        if mount.returncode != 0:
            os.rmdir(point)
            self.skipTest(f"no small file system can be mounted here: {mount.stderr.strip()}")
        try:
            done = hearth("train", self.recipe, "-o", point / "run", "train.steps=4")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assert_one_line(done, "space", str(point))
            subprocess.run(["mount", "-o", "remount,size=40m", point], check=True)
            done = hearth("train", "--resume", point / "run")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assert_whole_model(point / "run")
            # Full while the steps are made, whatever it is that does not fit.
            filled = 0
            for size in range(100, 900, 40):
                subprocess.run(["rm", "-r", point / "run"], check=True)
                subprocess.run(["mount", "-o", f"remount,size={size}k", point], check=True)
                done = hearth("train", self.recipe, "-o", point / "run", "train.save_every=1", "train.keep=99")
                if not (point / "run/checkpoints").exists():
                    continue
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn("--resume", done.stderr)
                filled += 1
            self.assertGreater(filled, 5)
        finally:
            subprocess.run(["umount", point], check=False)
            os.rmdir(point)

    def test_a_limit_on_the_size_of_files_is_told(self):
        limited = f"ulimit -f 40; {HEARTH} train {self.recipe} -o {self.root / 'limited'} --threads 1"
        done = subprocess.run(["bash", "-c", limited], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assert_one_line(done, "was not saved", "File too large", f"--resume {self.root / 'limited'} goes on")
        self.resume("limited")

    def test_a_kill_while_an_old_run_is_replaced(self):
        if not shutil.which("strace"):
            self.skipTest("there is no strace here")
        self.train("old", "train.steps=4", "train.save_every=1", "train.keep=9")
        begun = 0
        for nth in (2, 6, 12):
            run = self.root / f"killed-{nth}"
            shutil.copytree(self.root / "old", run)
            command = ["strace", "-f", "-o", "/dev/null", "-e", "trace=unlinkat,unlink,rmdir", "-e",
                       f"inject=unlinkat,unlink,rmdir:signal=KILL:when={nth}", HEARTH, "train", self.recipe, "-o", run,
                       "--force", "--threads", "1"]
            killed = subprocess.run(command, capture_output=True, text=True)
            if "ptrace" in killed.stderr:
                self.skipTest(f"strace cannot be used here: {killed.stderr.strip()}")
            self.assertNotEqual(killed.returncode, 0)
            if not (run / "config.yaml").exists():
                begun += 1
                done = hearth("train", "--resume", run)
                self.assertEqual(done.returncode, 2)
                self.assert_one_line(done, "config.yaml", "--force")
            self.train(run.name, "--force", "train.steps=1")
        self.assertGreater(begun, 0)


if __name__ == "__main__":
    unittest.main()
