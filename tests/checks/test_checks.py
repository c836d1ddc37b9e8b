"""The checks say no when they should: each plants what it must find."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["HEARTH_SOURCE"])


class Planted(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp())
        shutil.copytree(SOURCE / "src", self.root / "src")
        shutil.copytree(SOURCE / "tools", self.root / "tools")
        (self.root / "tests").mkdir()
        shutil.copy(SOURCE / "tests/layers.txt", self.root / "tests")

    def tearDown(self):
        shutil.rmtree(self.root)

    def check(self, name):
        run = subprocess.run([sys.executable, self.root / "tools" / name, self.root], capture_output=True, text=True)
        return run.returncode, run.stdout + run.stderr

    def test_an_upward_include_is_found(self):
        self.assertEqual(self.check("check_layers.py")[0], 0)
        path = self.root / "src/hearth/base/units.cpp"
        path.write_text('#include "hearth/cli/args.h"\n' + path.read_text())
        status, text = self.check("check_layers.py")
        self.assertEqual(status, 1)
        self.assertIn("units.cpp:1: base may not include cli", text)

    def test_mlx_below_ops_is_found(self):
        path = self.root / "src/hearth/kernels/dispatch.cpp"
        path.write_text("#include <mlx/mlx.h>\n" + path.read_text())
        self.assertIn("kernels may not include MLX", self.check("check_layers.py")[1])

    def test_an_upward_dependency_in_cmake_is_found(self):
        path = self.root / "src/hearth/hardware/CMakeLists.txt"
        path.write_text(path.read_text().replace("DEPENDS base", "DEPENDS base ops"))
        self.assertIn("hardware may not depend on ops", self.check("check_layers.py")[1])

    def test_a_cycle_cannot_be_written_down(self):
        (self.root / "tests/layers.txt").write_text("base: cli\ncli: base\n")
        self.assertNotEqual(self.check("check_layers.py")[0], 0)

    def test_a_file_of_601_lines_is_found(self):
        self.assertEqual(self.check("check_length.py")[0], 0)
        (self.root / "src/hearth/base/long.cpp").write_text("int x;\n" * 601)
        status, text = self.check("check_length.py")
        self.assertEqual(status, 1)
        self.assertIn("long.cpp: 601 lines", text)
        with (self.root / "tools/long_files.txt").open("a") as exceptions:
            exceptions.write("src/hearth/base/long.cpp a table\n")
        self.assertEqual(self.check("check_length.py")[0], 0)

    def test_a_source_opens_with_what_it_is(self):
        self.assertEqual(self.check("check_openings.py"), (0, self.check("check_openings.py")[1]))
        (self.root / "src/hearth/base/silent.h").write_text("#pragma once\nint x;\n")
        (self.root / "src/hearth/base/mute.cpp").write_text('#include <vector>\nint x;\n')
        # The header of the same name has said it.
        (self.root / "src/hearth/base/units_more.cpp").write_text('#include "hearth/base/units.h"\nint x;\n')
        status, text = self.check("check_openings.py")
        self.assertEqual(status, 1)
        self.assertIn("silent.h", text)
        self.assertIn("mute.cpp", text)
        self.assertNotIn("units_more.cpp", text)

    def test_a_function_of_101_lines_is_found(self):
        body = "  int x;\n" * 99
        (self.root / "src/hearth/base/long.cpp").write_text("void f() {\n" + body + "}\n")
        self.assertIn("101 lines in a function", self.check("check_length.py")[1])

    def test_the_map_must_match_the_tree(self):
        shutil.copy(SOURCE / "README.md", self.root)
        for folder in ("cmake", "docs", "examples", "profiles", "recipes", "tests"):
            (self.root / folder).mkdir(exist_ok=True)
        for file in SOURCE.iterdir():
            if file.is_file():
                shutil.copy(file, self.root)
        self.assertEqual(self.check("check_map.py"), (0, self.check("check_map.py")[1]))
        (self.root / "src/hearth/novelty").mkdir()
        self.assertIn("the tree lacks src/hearth/novelty/", self.check("check_map.py")[1])
        shutil.rmtree(self.root / "src/hearth/novelty")
        shutil.rmtree(self.root / "docs")
        self.assertIn("which does not exist", self.check("check_map.py")[1])

    def test_a_page_for_developers_names_what_exists(self):
        for page in ("DEVELOPMENT.md", "CONTRIBUTING.md"):
            shutil.copy(SOURCE / page, self.root)
        for folder in ("cmake", "examples", "recipes", "profiles", ".ci"):
            shutil.copytree(SOURCE / folder, self.root / folder)
        shutil.copytree(SOURCE / "tests", self.root / "tests", dirs_exist_ok=True)
        shutil.copytree(SOURCE / "docs", self.root / "docs")
        self.assertEqual(self.check("check_names.py"), (0, self.check("check_names.py")[1]))
        page, gone = self.root / "DEVELOPMENT.md", "No" + "SuchClass"
        page.write_text(page.read_text() + "\n`train/no_such_file.h` has `" + gone + "` and `foo.h` any name.\n")
        status, text = self.check("check_names.py")
        self.assertEqual(status, 1)
        self.assertIn("there is no train/no_such_file.h", text)
        self.assertIn(f"no source has the name {gone}", text)
        self.assertNotIn("foo.h", text)


class Unity(unittest.TestCase):
    """Files that must not be joined are not."""

    def grouped(self, **files):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                pathlib.Path(folder, name + ".cpp").write_text(text)
            paths = [os.path.join(folder, name + ".cpp") for name in files]
            command = [sys.executable, SOURCE / "tools/unity_groups.py", "6", *paths]
            out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return [[pathlib.Path(path).stem for path in line.split("|")] for line in out.splitlines()]

    def test_files_without_a_common_name_are_joined(self):
        self.assertEqual(self.grouped(a="int one() {\n}\n", b="int two() {\n}\n"), [["a", "b"]])

    def test_a_name_declared_twice_keeps_files_apart(self):
        for first, second in (
            ("int f(int x) {", "long f(long x) {"),
            ("struct Config {", "class Config {"),
            ("constexpr int kSize = 3;", "const long kSize = 4;"),
            ("const Entry kTable[] = {", "int kTable;"),
            ("std::vector<int> made(", "template <class T>\nT made(T x) {"),
            ("using Word = int;", "using Word = long;"),
        ):
            self.assertEqual(self.grouped(a=first + "\n", b=second + "\n"), [], first)

    def test_a_macro_or_an_opened_namespace_stays_alone(self):
        for text in ("#define X 1\n", "using namespace std;\n", '#include "hearth/data/help_test.h"\n'):
            self.assertEqual(self.grouped(a=text, b="int two() {\n}\n"), [], text)

    def test_members_of_a_class_are_no_names_of_the_file(self):
        self.assertEqual(self.grouped(a="void A::go() {\n}\n", b="void B::go() {\n}\n"), [["a", "b"]])


class Report(unittest.TestCase):
    """No skip is silent: each is counted with what was missing."""

    def told(self, *cases):
        text = "".join(f'<testcase name="{name}" status="{status}"><system-out>{out}</system-out></testcase>'
                       for name, status, out in cases)
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "ctest.xml").write_text(f"<testsuite>{text}</testsuite>")
            command = [sys.executable, SOURCE / "tools/test_report.py", folder]
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def test_a_skipped_script_names_what_it_lacks(self):
        told = self.told(("parity.a", "notrun", "SKIP: Python's torch is not installed\n"), ("e2e.b", "run", "fine"))
        self.assertIn("1 test cases ran, 1 were skipped", told)
        self.assertIn("1 skipped: parity.a: Python's torch is not installed", told)

    def test_cases_skipped_inside_a_script_are_told(self):
        out = "test_x (__main__.A.test_x) ... skipped 'no strace here'\ntest_y (__main__.A.test_y) ... ok\n"
        told = self.told(("e2e.b", "run", out))
        self.assertIn("1 test cases ran, 1 were skipped", told)
        self.assertIn("1 skipped: e2e.b: no strace here", told)


class Peers(unittest.TestCase):
    """A check whose package is missing skips by name, or fails where it was installed."""

    def skips(self, package, installed):
        code = f"import peers\ntry:\n    import {package}\nexcept ImportError as error:\n    peers.skip(error)"
        clean = {k: v for k, v in os.environ.items() if k != "HEARTH_PEERS"}
        run = subprocess.run([sys.executable, "-S", "-c", code], cwd=SOURCE / "tools", capture_output=True, text=True,
                             env={**clean, **({"HEARTH_PEERS": installed} if installed else {})})
        return run.returncode, run.stdout

    def test_only_what_was_not_installed(self):
        light, heavy = "hearth_no_such_package", "torch"
        for package, installed, code in ((light, "", 77), (heavy, "", 77), (light, "light", 1), (heavy, "light", 77),
                                         (light, "full", 1), (heavy, "full", 1)):
            self.assertEqual(self.skips(package, installed)[0], code, (package, installed))
        self.assertIn("torch is not installed: ./dev test --peers does it", self.skips(heavy, "light")[1])


if __name__ == "__main__":
    unittest.main()
