"""tools/check_macho.py says no when it should, to programs written here byte by
byte."""
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

CHECK = pathlib.Path(os.environ["HEARTH_SOURCE"]) / "tools/check_macho.py"
ARM64, X86 = 0x0100000C, 0x01000007
UNDEFINED, ANYWHERE, ANYWHERE_ZIG, FIRST_LIBRARY = 0x01, 0xFE00, 0x0000, 0x0100


def macho(symbols, cpu=ARM64, kind=2, macos=14, library="/usr/lib/libSystem.B.dylib"):
    """symbols: (name, where it is found)."""
    name = library.encode() + b"\0" * (8 - len(library) % 8)
    dylib = struct.pack("<6I", 0xC, 24 + len(name), 24, 0, 0, 0) + name
    version = struct.pack("<6I", 0x32, 24, 1, macos << 16, 14 << 16, 0)
    commands = version + dylib
    start = 32 + len(commands) + 24
    texts, table = b"\0", b""
    for text, where in symbols:
        table += struct.pack("<IBBHQ", len(texts), UNDEFINED, 0, where, 0)
        texts += text.encode() + b"\0"
    commands += struct.pack("<6I", 0x2, 24, start, len(symbols), start + len(table), len(texts))
    head = struct.pack("<8I", 0xFEEDFACF, cpu, 0, kind, 3, len(commands), 0, 0)
    return head + commands + table + texts


class Macho(unittest.TestCase):
    def check(self, data):
        with tempfile.NamedTemporaryFile() as file:
            file.write(data)
            file.flush()
            run = subprocess.run([sys.executable, CHECK, file.name], capture_output=True, text=True)
        return run.returncode, run.stdout + run.stderr

    def says_no(self, data, why):
        status, text = self.check(data)
        self.assertEqual(status, 1, text)
        self.assertIn(why, text)

    def test_a_program_that_leaves_libraries_open_passes(self):
        open_names = [("_ZSTD_isError", ANYWHERE), ("__ZN3fmt2v96vprintEv", ANYWHERE), ("_open", FIRST_LIBRARY)]
        status, text = self.check(macho(open_names))
        self.assertEqual(status, 0, text)
        self.assertIn("left to libraries: fmt 1, zstd 1", text)

    def test_a_function_of_ours_that_nobody_wrote_is_found(self):
        for where in (ANYWHERE, ANYWHERE_ZIG):
            self.says_no(macho([("__ZN6hearth12usable_coresEv", where)]), "__ZN6hearth12usable_coresEv")

    def test_a_function_that_macos_lacks_is_found(self):
        self.says_no(macho([("_sched_setaffinity", ANYWHERE)]), "_sched_setaffinity")

    def test_other_files_are_refused(self):
        self.says_no(b"\x7fELF" + b"\0" * 60, "no 64-bit Mach-O file")
        self.says_no(b"", "too short")
        self.says_no(macho([], cpu=X86), "must be for arm64")
        self.says_no(macho([], kind=6), "must be an executable")
        self.says_no(macho([], macos=15), "must be for macOS 14")
        self.says_no(macho([], library="/usr/lib/libc.dylib"), "must load libSystem")


if __name__ == "__main__":
    unittest.main()
