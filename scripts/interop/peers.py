"""Runs the foreign peers and prints one row for each. See `run`, which prepares what this needs.

Usage: peers.py [NAME …]     only the rows whose name contains one of the words
"""
import importlib
import pathlib
import sys
import tempfile
import time
import traceback

import sinks
from tools import HERE, Failed, NotRunnable


# A protocol is a folder with its rows; what is shared names none.
PROTOCOLS = sorted(file.parent.name for file in HERE.glob("*/rows.py"))
ROWS = sinks.ROWS + [row for name in PROTOCOLS for row in importlib.import_module(name + ".rows").ROWS]


def run(title, peer):
    with tempfile.TemporaryDirectory(prefix="interop-") as folder:
        try:
            named, note = peer(pathlib.Path(folder))
            return named or title, "passed", note
        except NotRunnable as why:
            return title, "not runnable here", str(why)
        except Failed as why:
            return title, "failed", str(why)
        except Exception as fault:  # A row that breaks is a row that failed, and the others still run.
            traceback.print_exc()
            return title, "failed", f"{type(fault).__name__}: {fault}"


def main():
    wanted = [word.lower() for word in sys.argv[1:]]
    width = max(len(title) for title, _ in ROWS) + 2
    verdicts = []
    for title, peer in ROWS:
        if wanted and not any(word in title.lower() for word in wanted):
            continue
        begun = time.monotonic()
        title, verdict, note = run(title, peer)
        verdicts.append(verdict)
        print(f"{title:<{width}} {verdict:<18} {time.monotonic() - begun:5.0f} s  {' '.join(note.split())}", flush=True)
    if not verdicts:
        sys.exit("interop: no row has such a name")
    print(", ".join(f"{verdicts.count(word)} {word}" for word in ("passed", "failed", "not runnable here")))
    sys.exit(1 if "failed" in verdicts else 0)


main()
