"""Faults are planted where their list says, once, and each behind its own switch."""
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(os.environ["HEARTH_SOURCE"]) / "tools"))
from mutant_list import ListError, planted, read_list  # noqa: E402

SOURCE = """int f(int a, int b) {
  count(
      a, b
  );
  return a + b > 3 ? g(a) : g(b);
}
"""


def a_list(*blocks):
    return read_list("file f.cpp\n\n" + "\n\n".join(blocks), "list.txt")


class Planting(unittest.TestCase):
    def test_an_expression_is_replaced_however_it_is_broken(self):
        text = planted(a_list("sum | train: A.*\n- a+b\n+ a - b"), SOURCE)
        self.assertIn('(::hearth_planted("sum") ? (a - b) : (a + b)) > 3', text)

    def test_a_statement_may_be_left_out(self):
        text = planted(a_list("uncounted | train: A.*\n- count(a, b);\n+"), SOURCE)
        self.assertIn('if (::hearth_planted("uncounted")) {  } else { count(\n      a, b\n  ); }', text)

    def test_marks_choose_a_part_of_what_is_found(self):
        text = planted(a_list("second | train: A.*\n- g(a) : @(g(b))@\n+ g(a)"), SOURCE)
        self.assertIn('g(a) : (::hearth_planted("second") ? (g(a)) : (g(b)));', text)

    def test_two_faults_of_one_place_have_two_switches(self):
        text = planted(a_list("one | train: A.*\n- a + b\n+ a", "two | train: A.*\n- a + b\n+ b"), SOURCE)
        self.assertIn('"two") ? (b) : ((::hearth_planted("one") ? (a) : (a + b)))', text)

    def test_what_is_not_there_once_is_refused(self):
        for find in ("a - b", "g"):
            with self.assertRaisesRegex(ListError, "list.txt:3: x: the text must be in f.cpp once"):
                planted(a_list(f"x | train: A.*\n- {find}\n+ 0"), SOURCE)

    def test_words_are_whole(self):
        for find in ("retur n", "oun", "unt(a, b)"):
            with self.assertRaisesRegex(ListError, "0 times", msg=find):
                planted(a_list(f"x | train: A.*\n- {find}\n+ 0"), SOURCE)

    def test_places_that_overlap_are_refused(self):
        with self.assertRaisesRegex(ListError, "overlap"):
            planted(a_list("x | train: A.*\n- a + b\n+ a", "y | train: A.*\n- b > 3\n+ false"), SOURCE)

    def test_a_list_says_what_must_see_a_fault(self):
        for head in ("x", "x | ", "x y | train: A.*", "x | A.*"):
            with self.assertRaises(ListError, msg=head):
                a_list(f"{head}\n- a + b\n+ a")


if __name__ == "__main__":
    unittest.main()
