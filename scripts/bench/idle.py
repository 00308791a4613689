"""What a relay costs that nobody calls: context switches, processor time, memory, and the threads that wake.

Usage: idle.py PROGRAM [WORD of `serve` …]      e.g. idle.py /usr/bin/sealbell --config sealbell.yaml
"""
import os
import pathlib
import re
import subprocess
import sys
import time

SETTLING_SECONDS, SECONDS = 30, 60


def threads(pid):
    """Of each thread its name, and how often it was switched, by itself and by others (proc(5), `status`)."""
    found = {}
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        status = (task / "status").read_text()
        name = re.search(r"^Name:\t(.*)$", status, re.M).group(1)
        found[task.name] = name, sum(int(word) for word in re.findall(r"ctxt_switches:\t(\d+)", status))
    return found


def processor_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def mebibytes(pid, name):
    return int(re.search(rf"^{name}:\s+(\d+) kB$", pathlib.Path(f"/proc/{pid}/status").read_text(), re.M).group(1)) / 1024


def main():
    relay = subprocess.Popen([sys.argv[1], "serve", *sys.argv[2:]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(SETTLING_SECONDS)
        before, spent = threads(relay.pid), processor_seconds(relay.pid)
        time.sleep(SECONDS)
        after, spent = threads(relay.pid), processor_seconds(relay.pid) - spent
        switches = {task: (name, count - before.get(task, ("", 0))[1]) for task, (name, count) in after.items()}
        print(f"context switches a minute {sum(count for _, count in switches.values()) * 60 // SECONDS}")
        print(f"processor seconds a minute {spent * 60 / SECONDS:.2f}")
        print(f"resident {mebibytes(relay.pid, 'VmRSS'):.1f} MiB, of it anonymous {mebibytes(relay.pid, 'RssAnon'):.1f}")
        for name, count in sorted(switches.values(), key=lambda one: -one[1])[:8]:
            print(f"{count:>8} {name}")
    finally:
        relay.terminate()
        relay.wait()


main()
