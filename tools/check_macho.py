#!/usr/bin/env python3
"""Holds programs that were linked for a Mac on another system: each must be a
64-bit Mach-O executable for arm64, made for macOS 14, that loads libSystem. What it
leaves to be found when it starts may only belong to the libraries of which only
the headers were here; a function of ours among them is one that nobody wrote
for macOS.

usage: check_macho.py PROGRAM..."""
import collections
import re
import struct
import sys

MAGIC, ARM64, EXECUTABLE = 0xFEEDFACF, 0x0100000C, 2
SYMTAB, LOAD_DYLIB, BUILD_VERSION = 0x2, 0xC, 0x32
MACOS, OLDEST = 1, 14
# In place of a library's number: wherever it is found, as Apple's linker and
# as zig's writes it.
ANYWHERE = (0xFE, 0x00)
UNDEFINED_EXTERNAL = 0x01

# How a library's names begin; a namespace is written with its length.
LIBRARIES = {
    "fmt": r"__Z(T[ISVW])?NK?3fmt",
    "yaml-cpp": r"__Z(T[ISVW])?NK?4YAML",
    "PCRE2": r"_pcre2_",
    "zstd": r"_ZSTD_",
    "zlib": r"_(inflate|deflate|crc32|adler32|compress|uncompress|zlib|gz)",
    "libcurl": r"_curl_",
    "OpenSSL": r"_((SSL|TLS|X509|EVP|BIO|ERR|OPENSSL|CRYPTO|ASN1|GENERAL_NAME|SHA|MD5|RAND)_|HMAC$)",
}


class NotRight(Exception):
    pass


def load_commands(data):
    if len(data) < 32:
        raise NotRight("it is no Mach-O file: too short")
    magic, cpu, _, kind, count, _, _, _ = struct.unpack_from("<8I", data)
    if magic != MAGIC:
        raise NotRight(f"it is no 64-bit Mach-O file: it begins with {magic:#x}")
    if cpu != ARM64:
        raise NotRight(f"it must be for arm64, its processor type is {cpu:#x}")
    if kind != EXECUTABLE:
        raise NotRight(f"it must be an executable, its type is {kind}")
    at = 32
    for _ in range(count):
        command, size = struct.unpack_from("<2I", data, at)
        yield command & 0x7FFFFFFF, at
        at += size


def text_at(data, at):
    return data[at : data.index(b"\0", at)].decode()


def looked_up(data, at):
    """Names that are not taken from a library that is known by now."""
    symbols, count, strings, _ = struct.unpack_from("<4I", data, at + 8)
    for i in range(count):
        name, kind, _, desc, _ = struct.unpack_from("<IBBHQ", data, symbols + 16 * i)
        if kind & 0x0F == UNDEFINED_EXTERNAL and desc >> 8 in ANYWHERE:
            yield text_at(data, strings + name)


def check(data):
    """Counts what is left open to each library; raises NotRight."""
    found, open_names, dylibs = None, [], []
    for command, at in load_commands(data):
        if command == BUILD_VERSION:
            platform, oldest = struct.unpack_from("<2I", data, at + 8)
            found = platform, oldest >> 16
        elif command == LOAD_DYLIB:
            dylibs.append(text_at(data, at + struct.unpack_from("<I", data, at + 8)[0]))
        elif command == SYMTAB:
            open_names += looked_up(data, at)
    if found != (MACOS, OLDEST):
        raise NotRight(f"it must be for macOS {OLDEST} (1, {OLDEST}), got {found}")
    if not any("libSystem" in d for d in dylibs):
        raise NotRight(f"it must load libSystem, it loads {dylibs}")
    counts, strange = collections.Counter(), []
    for name in open_names:
        owner = next((k for k, v in LIBRARIES.items() if re.match(v, name)), None)
        if owner is None or "6hearth" in name:
            strange.append(name)
        else:
            counts[owner] += 1
    if strange:
        raise NotRight(f"{len(strange)} names are nowhere defined:\n    " + "\n    ".join(strange[:20]))
    return counts


def main():
    wrong = 0
    if len(sys.argv) < 2:
        sys.exit("check_macho.py: no program was named")
    for path in sys.argv[1:]:
        try:
            with open(path, "rb") as file:
                counts = check(file.read())
        except NotRight as error:
            wrong += 1
            print(f"{path}: {error}")
            continue
        left = ", ".join(f"{k} {n}" for k, n in sorted(counts.items()))
        print(f"   {path.split('/')[-1]}: arm64, macOS {OLDEST}; left to libraries: {left or 'nothing'}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
