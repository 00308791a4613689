#!/usr/bin/env python3
"""Shows that the shim bites: the sqlite3 command line under forget.so, cut off again and again.

With synchronous=FULL every row that was confirmed must be there after the cut; with NORMAL (write-ahead log)
some must be missing, or the shim forgets nothing and proves nothing. The same with EARLY writes, which reach the
disk out of order, and for a file that was synced while its directory was not.

usage: selftest.py SHIM CUT [ROUNDS]
"""
import os, pathlib, random, signal, subprocess, sys, tempfile

SHIM, CUT = map(os.path.abspath, sys.argv[1:3])
ROUNDS = int(sys.argv[3]) if len(sys.argv) > 3 else 8


def environment(place, early=0, entries="directory"):
    return {**os.environ, "LD_PRELOAD": SHIM, "FORGET_DIR": f"{place}/disk", "FORGET_SHADOW": f"{place}/shadow",
            "FORGET_EARLY": str(early), "FORGET_ENTRIES": entries}


def session(place, synchronous, early, rows):
    """Inserts rows until cut off; returns the confirmed ids."""
    shell = subprocess.Popen(
        ["sqlite3", "-batch", f"{place}/disk/t.sqlite"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env=environment(place, early))
    confirmed = []

    def say(text):
        shell.stdin.write((text + "\n").encode())
        shell.stdin.flush()

    say("PRAGMA journal_mode=WAL;")
    assert shell.stdout.readline().strip() == b"wal"
    say(f"PRAGMA synchronous={synchronous};")
    say("CREATE TABLE IF NOT EXISTS t(id INTEGER PRIMARY KEY, body BLOB);")
    for _ in range(rows):
        say(f"INSERT INTO t(body) VALUES(randomblob({random.randrange(10, 9000)})) RETURNING id;")
        confirmed.append(int(shell.stdout.readline()))
    say("INSERT INTO t(body) VALUES(randomblob(100000));")     # one more that is never confirmed
    shell.send_signal(signal.SIGKILL)
    shell.wait()
    shell.stdin.close()
    shell.stdout.close()
    return confirmed


def lost(synchronous, early):
    with tempfile.TemporaryDirectory() as place:
        os.mkdir(f"{place}/disk")
        os.mkdir(f"{place}/shadow")
        confirmed, missing = set(), 0
        for _ in range(ROUNDS):
            confirmed.update(session(place, synchronous, early, random.randrange(1, 120)))
            subprocess.run([CUT, f"{place}/disk", f"{place}/shadow"], check=True)
            answer = subprocess.run(
                ["sqlite3", f"{place}/disk/t.sqlite", "PRAGMA integrity_check;", "SELECT id FROM t;"],
                capture_output=True, text=True).stdout.split()
            if answer[:1] != ["ok"]:
                return len(confirmed), len(confirmed)
            there = set(map(int, answer[1:]))
            missing += len(confirmed - there)
            confirmed &= there
        return len(confirmed) + missing, missing


def entry(entries):
    """A new file, synced, its directory not: whether it is there after the cut."""
    with tempfile.TemporaryDirectory() as place:
        os.mkdir(f"{place}/disk")
        os.mkdir(f"{place}/shadow")
        program = ("import os,signal; f=os.open('new',os.O_CREAT|os.O_WRONLY); os.write(f,b'x'); os.fsync(f);"
                   "os.kill(os.getpid(),signal.SIGKILL)")
        subprocess.run([sys.executable, "-c", program], env=environment(place, 0, entries), cwd=f"{place}/disk")
        subprocess.run([CUT, f"{place}/disk", f"{place}/shadow"], check=True)
        return pathlib.Path(f"{place}/disk/new").exists()


def main():
    random.seed(int(os.environ.get("SEED", "1")))
    good = True
    for synchronous, early, wanted in [("FULL", 0, "none"), ("FULL", 30, "none"), ("NORMAL", 0, "some")]:
        rows, missing = lost(synchronous, early)
        passed = (missing == 0) if wanted == "none" else (missing > 0)
        good &= passed
        print(f"shim  synchronous={synchronous:6} early={early:2}%  confirmed {rows:4}  lost {missing:4}"
              f"  wanted {wanted}  {'passed' if passed else 'FAILED'}")
    for entries, wanted in [("directory", False), ("file", True)]:
        passed = entry(entries) == wanted
        good &= passed
        print(f"shim  entries={entries:9}  new file {'kept' if wanted else 'forgotten'}"
              f"  {'passed' if passed else 'FAILED'}")
    sys.exit(0 if good else 1)


main()
