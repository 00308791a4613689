#!/usr/bin/env python3
"""Runs the relay of two builds in turn against one sink, and prints the newer one's figures beside the older one's.

  scripts/bench/paired.py OLD NEW [ROUNDS=3] [SECONDS=4] [DEVICES=10,1]

OLD and NEW are folders that hold `sealbell` and `sealbell-bench`, such as .build/release of two checkouts. A machine's
speed drifts by a quarter within minutes, so each round runs both, and the ratio is the one of the medians. Wants nginx
and a machine that does nothing else.
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lib"))
words = [word for word in sys.argv[1:] if "=" not in word]
OPTIONS = dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word)
if len(words) != 2:
    sys.exit(__doc__)
BUILDS = {"old": pathlib.Path(words[0]).resolve(), "new": pathlib.Path(words[1]).resolve()}
# table.py reads its own words, and the program's place from the environment.
sys.argv[1:] = []
os.environ["SEALBELL_BIN"] = str(BUILDS["new"] / "sealbell")
os.environ["PATH"] += ":/usr/sbin:/sbin"
sys.path.insert(0, str(HERE))
import table
from servers import answers, certificates, running


def run(build, sink, devices):
    """One run at full load: pushes a second, and the relay's processor microseconds a push."""
    command = [str(build / "sealbell-bench"), "relay", *map(str, sink), "--seconds", OPTIONS.get("SECONDS", "4"),
               "--devices-per-request", devices, "--connections", "64" if devices == "10" else "256", "--json"]
    environment = {**os.environ, "SEALBELL_BIN": str(build / "sealbell")}
    told = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    if told.returncode:
        sys.exit(f"{build}: the bench ended with {told.returncode}: {told.stderr[-500:]}")
    report = json.loads(told.stdout.strip().splitlines()[-1])
    return report["pushes_per_second"], report["relay_cpu_microseconds_per_push"]


with tempfile.TemporaryDirectory() as place:
    folder = pathlib.Path(place)
    certificates(folder)
    port, command = table.nginx(folder)
    with running(command, folder, answers(port)) as server:
        sink = ["--sink", f"https://127.0.0.1:{port}", "--ca", folder / "ca.pem", "--sink-pid", table.worker(server.pid)]
        for devices in OPTIONS.get("DEVICES", "10,1").split(","):
            runs = {name: [] for name in BUILDS}
            for _ in range(int(OPTIONS.get("ROUNDS", "3"))):
                for name, build in BUILDS.items():
                    runs[name].append(run(build, sink, devices))
                    print(f"  {devices} a request, {name}: {runs[name][-1]}", file=sys.stderr, flush=True)
            (old, old_cpu), (new, new_cpu) = (
                (statistics.median(rate for rate, _ in each), statistics.median(cpu for _, cpu in each))
                for each in runs.values())
            print(f"{devices} a request: {new / old:.2f} of the older one's pushes ({new:.0f} and {old:.0f} a second), "
                  f"{new_cpu / old_cpu:.2f} of its processor time ({new_cpu:.1f} and {old_cpu:.1f} us a push)")
