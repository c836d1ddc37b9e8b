"""kill -9 at random moments: every restart goes on from a valid checkpoint and the end is that of an undisturbed run.

HEARTH_KILLS says how many times it is killed (12). With --slow it is 50 times, where HEARTH_SLOW is set; else it skips."""
import os
import random
import shutil
import subprocess
import sys
import time
import unittest

from train_case import HEARTH, TrainCase

SLOW = "--slow" in sys.argv
KILLS = int(os.environ.get("HEARTH_KILLS", "50" if SLOW else "12"))
WORDS = ["train.steps=120", "train.save_every=5", "train.eval_every=50", "train.keep=2"]


class Kill(TrainCase):
    def test_every_restart_goes_on(self):
        began = time.monotonic()
        self.train("whole", *WORDS)
        whole = time.monotonic() - began
        random.seed(11)
        run, kills, ends = self.root / "killed", 0, 0
        self.start(run, *WORDS, seconds=0.5 * whole)
        while kills < KILLS or not self.finished(run):
            if self.finished(run):
                # It got through: all its checkpoints and its model go, and it begins anew.
                ends += 1
                self.assert_same_end("whole", "killed", 120)
                self.cut_back(run)
            kill = kills < KILLS
            error = self.start(run, "--resume", seconds=random.uniform(0.02, 0.6 * whole) if kill else None)
            kills += error is None
            if error is not None:
                self.assertNotIn("is damaged", error)
        self.assert_same_end("whole", "killed", 120)
        self.assertEqual([m["step"] for m in self.metrics("killed")], list(range(1, 121)))
        print(f"killed {kills} times, {ends + 1} ends reached")

    def start(self, run, *words, seconds):
        """Runs it, killed after so many seconds; gives what it said, or nothing when it was killed."""
        what = ["--resume", run] if "--resume" in words else [self.recipe, "-o", run, *words]
        command = [HEARTH, "train", "--threads", str(self.threads), *what]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        try:
            error = process.communicate(timeout=seconds)[1]
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return None
        self.assertEqual(process.returncode, 0, error)
        return error

    def finished(self, run):
        return (run / "checkpoints/step-000120").is_dir()

    def cut_back(self, run):
        for folder in [*(run / "checkpoints").iterdir(), run / "model"]:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    if SLOW and not os.environ.get("HEARTH_SLOW"):
        print("SKIP: takes minutes; HEARTH_SLOW=1 runs it")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
