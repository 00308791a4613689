"""Writes the copyright file of the Debian package: every licence and notice of what the program holds.

The texts are taken from where they come with the code: the toolchain's licence and headers, the licence and notice
files of the packages, and what stands above single sources of them. packaging/deb/licences has the few that come with
neither: Foundation's ICU and base64, and the libyaml in Yams.

Usage: licences.py CHECKOUTS SWIFT > copyright      (SWIFT: where the toolchain is; its licence is in share/swift)
"""
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
COMMON = "/usr/share/common-licenses/Apache-2.0"
NAMES = re.compile(r"(licen[cs]e|copying|notice)(\.(txt|md))?", re.I)
SOURCES = {".c", ".h", ".cc", ".cpp", ".S", ".swift"}
# Not in the program.
APART = {".git", "Tests", "Benchmarks", "Examples", "IntegrationTests", "dev", "Plugins", "Utils", "Utilities"}
# What a whole licence says; a line that refers to a file does not.
GRANTS = re.compile(r"Permission is hereby granted|Redistribution and use|provided 'as-is'|redistribution and use of"
                    r"|To the extent possible under law", re.I)
COMMENT = re.compile(r"/\*.*?\*/|(?:^[ \t]*//[^\n]*\n)+", re.S | re.M)
# Without one of these a package would go out without what it must have.
NEEDED = ["Runtime Library Exception", "UNICODE LICENSE V3", "Jean-loup Gailly", "V8 project", "Kirill Simonov"]
LIMIT = 64 << 10


def words(text):
    return " ".join(text.split())


def is_apache(text):
    """Whether it is the Apache licence, and nothing else but how to apply it."""
    _, end, rest = words(text).partition("END OF TERMS AND CONDITIONS")
    applied = r"(APPENDIX: How to apply.*limitations under the License\.)?"
    return "Apache License Version 2.0" in words(text)[:100] and end and re.fullmatch(applied, rest.strip())


def bare(comment):
    """A comment's text without what makes it a comment."""
    lines = [re.sub(r"^\s*(/\*+|\*+/|\*|//+|#)? ?", "", line) for line in comment.splitlines()]
    return "\n".join(re.sub(r"\s*\*+/\s*$", "", line).rstrip() for line in lines).strip("\n")


def in_files(checkouts):
    """Licences and notices that are files: (package, notice?, text)."""
    for package in sorted(path for path in checkouts.iterdir() if path.is_dir()):
        found = False
        for path in sorted(package.rglob("*")):
            inside = path.relative_to(package).parts
            if NAMES.fullmatch(path.name) and path.is_file() and not APART & set(inside):
                found = found or len(inside) == 1
                name = package.name if len(inside) == 1 else "-".join((package.name, inside[-2]))
                yield name, path.name.lower().startswith("notice"), path.read_text(errors="replace")
        if not found:
            sys.exit(f"licences: {package.name} has no licence file")


def in_sources(name, folder):
    """Whole licences above sources of a folder, each once."""
    for path in sorted(folder.rglob("*")):
        if path.suffix in SOURCES and not APART & set(path.relative_to(folder).parts) and path.is_file():
            for comment in COMMENT.finditer(path.read_text(errors="replace")[:LIMIT]):
                if GRANTS.search(comment[0]) and re.search(r"copyright|public domain", comment[0], re.I):
                    yield f"{name}-{path.stem}", bare(comment[0])


def folded(text, first=""):
    """As a field of several lines."""
    lines = [" " + line.rstrip() if line.strip() else " ." for line in text.strip("\n").splitlines()]
    return "\n".join([first, *lines])


def main(checkouts, toolchain):
    checkouts, toolchain = pathlib.Path(checkouts), pathlib.Path(toolchain)
    texts, notices, known = {}, [], {}

    def add(name, text):
        if is_apache(text):
            return
        key = words(text)
        if key not in known:
            known[key] = name
            texts[name] = text

    add("Swift", (toolchain / "share/swift/LICENSE.txt").read_text())
    for name, is_notice, text in in_files(checkouts):
        if is_notice:
            notices.append(f"{name}:\n\n" + text.strip("\n"))
        else:
            add(name, text)
    for package in sorted(path for path in checkouts.iterdir() if path.is_dir()):
        for name, text in in_sources(package.name, package):
            add(name, text)
    for name, text in in_sources("Foundation", toolchain / "lib/swift_static/_FoundationCShims"):
        add(name, text)
    for path in sorted((TOP / "packaging/deb/licences").iterdir()):
        add(path.name, path.read_text())

    whole = "\n".join(texts.values())
    lacking = [phrase for phrase in NEEDED if phrase not in whole]
    if lacking:
        sys.exit("licences: no text says " + ", ".join(lacking))
    holders = re.findall(r"^\W*(Copyright (?:\([cC]\)|[©A-Z12]).*?)\s*$", whole, re.M)
    fields = {
        "HOLDERS": folded("\n".join(dict.fromkeys(["The Sealbell authors", *holders]))),
        "NAMES": " and ".join(["Apache-2.0", *texts]),
        "NOTICES": folded("\n\n".join(notices)).lstrip("\n"),
    }
    head = (TOP / "packaging/deb/copyright").read_text()
    print(re.sub(r"@(\w+)@", lambda at: fields[at[1]], head).strip())
    for name, text in texts.items():
        print(f"\nLicense: {name}{folded(text)}")


main(*sys.argv[1:])
