"""Reads `swift package show-dependencies --format json` and writes a bill of materials.

Usage: sbom.py DEPENDENCIES.json OUT.json
"""
import json
import pathlib
import re
import subprocess
import sys

# A phrase that stands in exactly one licence's text, and its SPDX name. The first hit wins.
PHRASES = [
    ("Apache-2.0", r"Apache License\s+Version 2\.0"),
    ("MIT", r"Permission is hereby granted, free of charge"),
    ("BSD-3-Clause", r"Neither the name of"),
    ("BSD-2-Clause", r"Redistributions in binary form must reproduce"),
    ("ISC", r"Permission to use, copy, modify, and/?o?r? distribute this software"),
]
SYSTEM = [("libnghttp2", "MIT"), ("libsodium", "ISC"), ("libsecp256k1", "MIT"), ("sqlite3", "blessing"), ("libpq", "PostgreSQL"), ("zlib", "Zlib"),
          ("libzmq", "LGPL-3.0-or-later")]

# What stands in a package under a licence of its own: package, folder, name, SPDX name.
INSIDE = [("swift-crypto", "Sources/CCryptoBoringSSL", "boringssl", "Apache-2.0"),
          ("swift-crypto", "Sources/CXKCP", "xkcp", "CC0-1.0"),
          ("swift-nio", "Sources/CNIOLLHTTP", "llhttp", "MIT"), ("swift-nio", "Sources/CNIOSHA1", "freebsd-sha1", "BSD-3-Clause"),
          ("swift-nio-extras", "Sources/CNIOExtrasZlib", "zlib", "Zlib"),
          ("swift-nio-ssl", "Sources/CNIOBoringSSL", "boringssl", "Apache-2.0"), ("yams", "Sources/CYaml", "libyaml", "MIT")]


def licence(folder):
    """The SPDX name of the licence file in `folder`, or `unknown`."""
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        if re.match(r"(licen[cs]e|copying)", path.name, re.I) and path.is_file():
            text = path.read_text(errors="replace")
            for name, phrase in PHRASES:
                if re.search(phrase, text):
                    return name
    return "unknown"


def walk(node, seen):
    for child in node.get("dependencies", []):
        seen.setdefault(child["identity"], child)
        walk(child, seen)
    return seen


def system_version(name):
    asked = subprocess.run(["pkg-config", "--modversion", name], capture_output=True, text=True)
    return asked.stdout.strip() if asked.returncode == 0 else "not installed"


def swift_version():
    """Of the toolchain whose runtime and standard library the program holds."""
    said = subprocess.run(["swift", "--version"], capture_output=True, text=True).stdout
    found = re.search(r"Swift version ([\d.]+)", said)
    return found[1] if found else "not installed"


def icu_version():
    """Of the ICU in the toolchain's Foundation."""
    said = subprocess.run(["swiftc", "-print-target-info"], capture_output=True, text=True).stdout
    header = pathlib.Path(json.loads(said)["paths"]["runtimeResourcePath"] + "_static/_foundation_unicode/uvernum.h")
    found = re.search(r'define U_ICU_VERSION "([\d.]+)"', header.read_text()) if header.is_file() else None
    return found[1] if found else "unknown"


def main():
    root = json.load(open(sys.argv[1], encoding="utf-8"))
    rows = []
    for identity, node in sorted(walk(root, {}).items()):
        folder = pathlib.Path(node["path"])
        rows.append((identity, node["version"], licence(folder), node["url"]))
        for package, inside, name, spdx in INSIDE:
            if package == identity:
                if not (folder / inside).is_dir():
                    sys.exit(f"sbom: {package} has no {inside} any more")
                rows.append((f"{package}/{name}", node["version"], spdx, None))
    for name, spdx in SYSTEM:
        rows.append((name, system_version(name), spdx, None))

    rows.append(("swift", swift_version(), "Apache-2.0 WITH Swift-exception", "https://github.com/swiftlang/swift"))
    rows.append(("swift/icu", icu_version(), "Unicode-3.0", "https://github.com/swiftlang/swift-foundation-icu"))

    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        print("  ".join(row[column].ljust(widths[column]) for column in range(3)).rstrip())

    components = []
    for name, version, spdx, url in rows:
        one = {"type": "library", "name": name, "version": version}
        stated = {"license": {"name": spdx}} if spdx == "unknown" else {"license": {"id": spdx}}
        one["licenses"] = [{"expression": spdx} if " WITH " in spdx else stated]
        if url:
            one["externalReferences"] = [{"type": "vcs", "url": url}]
        components.append(one)
    document = {
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {"component": {"type": "application", "name": "sealbell"}},
        "components": components,
    }
    with open(sys.argv[2], "w", encoding="utf-8") as out:
        json.dump(document, out, indent=1)
        out.write("\n")
    unknown = [row[0] for row in rows if row[2] == "unknown"]
    if unknown:
        sys.exit("sbom: no licence recognised for " + ", ".join(unknown))


main()
