"""Makes the manual page out of the commands themselves.

Usage: sealbell --experimental-dump-help | manual.py VERSION >sealbell.1
"""
import json
import re
import sys

# What every command has, and the page says once.
EVERYWHERE = {"version", "help"}
END = r"""
.SH FILES
.TP
.I /etc/sealbell/sealbell.yaml
The configuration, where no other is named and the working directory has none.
.TP
.I /etc/sealbell/example.yaml
An example.
.TP
.I /var/lib/sealbell
The state directory of the system's service.
.SH EXIT STATUS
.TP
.B 0
Done.
.TP
.B 1
The request failed, or the thing asked for is not known.
.TP
.B 64
The command line is wrong.
.TP
.B 69
The relay or a push service is not available.
.TP
.B 70
A fault of the program; please report it.
.TP
.B 78
The configuration or a file that it names is wrong.
"""


def text(words):
    """What troff prints as it stands."""
    words = words.replace("\\", r"\e").replace("-", r"\-")
    return re.sub(r"(?m)^([.'])", r"\\&\1", words)


def named(argument):
    """`-h, --help`, `--state <directory>`, `<file>`, `[<file>]`."""
    value = f"<{argument['valueName']}>"
    if argument["kind"] == "positional":
        return value
    names = ", ".join(("--" if name["kind"] == "long" else "-") + name["name"] for name in argument["names"])
    return names if argument["kind"] == "flag" else f"{names} {value}"


def in_synopsis(argument):
    word = named({**argument, "names": [argument["preferredName"]]} if "names" in argument else argument)
    word += " ..." if argument["isRepeating"] else ""
    return f"[{word}]" if argument["isOptional"] else word


def paragraphs(command):
    for key in ("abstract", "discussion"):
        if command.get(key):
            yield from re.split(r"\n\s*\n", command[key])


def section(command, names):
    """One command with its arguments, then those below it."""
    names = [*names, command["commandName"]]
    subcommands = [sub for sub in command.get("subcommands", []) if sub["shouldDisplay"]]
    arguments = [argument for argument in command.get("arguments", [])
                 if argument["shouldDisplay"] and argument["valueName"] not in EVERYWHERE]
    if not subcommands:
        synopsis = " ".join(in_synopsis(argument) for argument in arguments)
        yield f".SS {' '.join(names)}"
        yield f".B {text(' '.join(names))}"
        if synopsis:
            yield text(synopsis)
        for paragraph in paragraphs(command):
            yield ".PP"
            yield text(paragraph)
        for argument in arguments:
            yield f".TP\n.B {text(named(argument))}"
            said = " ".join(filter(None, [argument.get("abstract"), argument.get("discussion")]))
            if "defaultValue" in argument:
                said += f" Default: {argument['defaultValue']}."
            yield text(said or argument["valueName"])
    for sub in subcommands:
        yield from section(sub, names)


def main():
    command = json.load(sys.stdin)["command"]
    print(f'.TH SEALBELL 1 "" "sealbell {sys.argv[1]}" "Sealbell"\n.ad l\n.nh')
    print(f".SH NAME\nsealbell \\- {text(command['abstract'].rstrip('.'))}")
    print(".SH SYNOPSIS\n.B sealbell\n.I command\n[\\fIoptions\\fR]\n.br\n.B sealbell help\n.I command")
    print(".SH COMMANDS")
    for sub in command["subcommands"]:
        if sub["commandName"] != "help":
            print("\n".join(section(sub, [command["commandName"]])))
    print(END.strip())


main()
