"""Makes an object of the data of the toolchain's ICU without what a server never asks for.

Of 34 MB it keeps 1.7 MB: of what formatters and patterns stand on, that which is of no language or English. Without
any data some of Foundation's formatters end the process (docs/decisions/0143-what-a-package-weighs.md).

Prints the linker's flag that puts it in the place of the whole; the whole is then referred to by nothing, and goes
with --gc-sections.

Usage: unicode.py lib_FoundationICU.a OUT.o
"""
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

NAME = "sealbell_unicode_data"
MEMBER = "icu_packaged_data.cpp.o"
LOCALE = re.compile(r"[a-z]{2,3}(_\w+)?")
ENGLISH = {"en", "en_US", "en_US_POSIX", "en_001"}
# Charsets but Unicode's, names of characters, look-alikes, distances of languages, further normal forms.
LEFT_OUT = re.compile(r".*\.(cnv|spp)|cnvalias\.icu|unames\.icu|confusables\.cfu|langInfo\.res|windowsZones\.res"
                      r"|nfkc_\w+\.nrm")
# Breaks of lines and words, orders of languages, names of languages, regions and units, spoken numbers, transliteration.
LEFT_OUT_FOLDERS = {"brkitr", "coll", "lang", "rbnf", "region", "translit", "unit"}


def is_kept(name):
    """By the name of an item: `icudt76l/curr/en.res`."""
    folder, _, file = name.partition("/")[2].rpartition("/")
    stem, _, ending = file.rpartition(".")
    if LEFT_OUT.fullmatch(file) or folder in LEFT_OUT_FOLDERS:
        return False
    return ending != "res" or stem in ENGLISH or not LOCALE.fullmatch(stem)


def trimmed(data):
    """The same package of data with fewer items: a header, a table of contents, names, and items by name."""
    start = struct.unpack_from("<H", data)[0]
    count = struct.unpack_from("<I", data, start)[0]
    table = [struct.unpack_from("<II", data, start + 4 + 8 * index) for index in range(count)]
    ends = [offset for _, offset in table[1:]] + [len(data) - start]
    kept = []
    for (name, begin), end in zip(table, ends):
        name = data[start + name : data.index(b"\0", start + name)]
        if is_kept(name.decode()):
            kept.append((name + b"\0", data[start + begin : start + end]))
    names_at = 4 + 8 * len(kept)
    items_at = -(-(names_at + sum(len(name) for name, _ in kept)) // 16) * 16
    contents, names, items = struct.pack("<I", len(kept)), b"", b""
    for name, item in kept:
        contents += struct.pack("<II", names_at + len(names), items_at + len(items))
        names += name
        items += item + b"\0" * (-len(item) % 16)
    return data[:start] + (contents + names).ljust(items_at, b"\0") + items


def main(library, out):
    def run(*command):
        return subprocess.run(command, check=True, capture_output=True, cwd=place).stdout

    with tempfile.TemporaryDirectory() as place:
        library, out = pathlib.Path(library).resolve(), pathlib.Path(out).resolve()
        run("ar", "x", library, MEMBER)
        symbol = re.search(rb"\b(icudt\d+_dat)$", run("nm", MEMBER), re.MULTILINE)[1].decode()
        run("objcopy", "-O", "binary", "--only-section=.rodata", MEMBER, "whole")
        whole = pathlib.Path(place, "whole").read_bytes()
        data = trimmed(whole)
        pathlib.Path(place, "data").write_bytes(data)
        pathlib.Path(place, "data.s").write_text(
            f".section .rodata.{NAME},\"a\"\n.balign 16\n.globl {NAME}\n.hidden {NAME}\n{NAME}:\n.incbin \"data\"\n"
            ".section .note.GNU-stack,\"\",%progbits\n")
        run("cc", "-c", "data.s", "-o", out)
        print(f"unicode: kept {len(data)} of {len(whole)} bytes of data", file=sys.stderr)
        print(f"--defsym={symbol}={NAME}")


main(*sys.argv[1:])
