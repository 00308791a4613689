"""Runs the measurements and prints the table. See `run`, which prepares what this needs.

Every figure is one run; the machine is shared by sink, relay and driver, so ratios say more than figures. A run
that fails is a row that says so, and the status is 1 then.
"""
import datetime
import importlib.util
import itertools
import json
import os
import pathlib
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lib"))
from postgres import database, fresh
from servers import NotServing, answers, certificates, free_port, running
from waits import Waits

SEALBELL = os.environ["SEALBELL_BIN"]
BENCH = os.environ.get("SEALBELL_BENCH") or os.path.join(os.path.dirname(SEALBELL), "sealbell-bench")
OPTIONS = dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word)
SECONDS = float(OPTIONS.get("SECONDS", "10"))
REQUESTS = int(OPTIONS.get("REQUESTS", "400000"))
ONLY = OPTIONS.get("ONLY", "")
DEADLINE_SECONDS = 900
# Callers of all relays together, however many there are: what is under way at once is then the same, and with it
# what the processors' caches have to hold. Enough that each of four relays still fills its commits.
CALLERS = 512
# The driver's connections at half load.
HALF_CONNECTIONS = 128

TOKENS = [os.urandom(32).hex() for _ in range(512)]
rows, raw, failed = [], {}, []


def row(goal, name, ratio, note="", met=None):
    """One line of the table: what the goal is, what came out."""
    verdict = "" if met is None else ("met" if met else "missed")
    rows.append((ratio, goal, verdict, name, note))
    print(f"  {name}: {ratio} {verdict}{f' ({note})' if note else ''}", file=sys.stderr, flush=True)


def worker(pid):
    """The process that does the work: the only child, if there is one (nginx's worker)."""
    for _ in range(50):
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        if children:
            return int(children[0])
        time.sleep(0.01)
    return pid


def nginx(folder):
    port = free_port()
    text = (HERE / "nginx.conf").read_text().replace("@PORT@", str(port))
    (folder / "nginx.conf").write_text(text)
    return port, ["nginx", "-p", str(folder), "-e", "error.log", "-c", str(folder / "nginx.conf")]


def nghttpd(folder):
    port = free_port()
    htdocs = folder / "htdocs" / "3" / "device"
    htdocs.mkdir(parents=True, exist_ok=True)
    for token in TOKENS:
        (htdocs / token).touch()
    return port, ["nghttpd", "-n", "1", "-m", "1000", "-d", "htdocs", "-a", "127.0.0.1", str(port), "leaf.key",
                  "leaf.pem"]


def run(name, *arguments, environment=None, deadline=DEADLINE_SECONDS):
    """One run of `sealbell-bench …`, whose words of progress pass through; its report, or None."""
    command = [BENCH, *map(str, arguments), "--json"]
    words = []
    waits = []

    def hear(stream):
        for line in stream:
            words.append(line)
            # The last word before the load, of the parts that start a relay of their own.
            if "pushes made ready" in line:
                waits.append(Waits(told.pid))
            print(f"  {name}: {line.rstrip()}", file=sys.stderr, flush=True)

    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          stdin=subprocess.DEVNULL, env={**os.environ, **(environment or {})}) as told:
        ear = threading.Thread(target=hear, args=(told.stderr,))
        ear.start()
        over = threading.Timer(deadline, told.kill)
        over.start()
        output = told.stdout.read()
        told.wait()
        ear.join()
        waited = waits[-1].told() if waits else {}
        if over.finished.is_set():
            failed.append(f"{name}: not done after {deadline} s")
            return None
        over.cancel()
    lines = [line for line in output.splitlines() if line.startswith("{")]
    if not lines:
        failed.append(f"{name}: ended with {told.returncode}: {''.join(words).strip()[-300:]}")
        return None
    report = {**json.loads(lines[-1]), **waited}
    raw.setdefault(name, []).append(report)
    if told.returncode != 0:
        failed.append(f"{name}: {json.dumps(report)}")
    return report


def h2load(name, port, connections, streams, folder):
    """Requests a second of h2load with what a push carries, and its CPU time a request in microseconds."""
    body = folder / "body"
    body.write_bytes(b"x" * 400)
    paths = folder / "paths"
    paths.write_text("".join(f"https://127.0.0.1:{port}/3/device/{token}\n" for token in TOKENS))
    headers = {"apns-topic": "org.example.bench", "apns-push-type": "alert", "apns-priority": "10",
               "apns-id": "01900000-0000-7000-8000-000000000000", "authorization": "bearer " + "x" * 200}
    command = ["h2load", "-n", str(REQUESTS), "-c", str(connections), "-m", str(streams), "-t", "1", "-d", str(body),
               "-i", str(paths)]
    for key, value in headers.items():
        command += ["-H", f"{key}: {value}"]
    before = os.times()
    told = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_SECONDS)
    after = os.times()
    found = re.search(r"finished in ([\d.]+)(us|ms|s), ([\d.]+) req/s", told.stdout)
    if not found or f"{REQUESTS} succeeded" not in told.stdout:
        failed.append(f"h2load {name}: {told.stdout[-300:]}")
        return None
    cpu = after.children_user - before.children_user + after.children_system - before.children_system
    report = {"requests_per_second": float(found.group(3)), "cpu_microseconds_per_request": cpu * 1e6 / REQUESTS}
    raw.setdefault(f"h2load {name}", []).append(report)
    return report


def sender(folder):
    """The sender alone, turn by turn with h2load: the median of three ratios."""
    for title, make, goal in [("nginx", nginx, 0.8), ("nghttpd", nghttpd, None)]:
        port, command = make(folder)
        with running(command, folder, answers(port)):
            for connections, streams in [(1, 100), (8, 100)]:
                ratios, best = [], ""
                for _ in range(3):
                    theirs = h2load(f"{title} {connections}x{streams}", port, connections, streams, folder)
                    ours = run(f"sender {title} {connections}x{streams}", "sender", "--host", "127.0.0.1", "--port",
                               port, "--ca", folder / "ca.pem", "--tokens", folder / "tokens", "--requests", REQUESTS, "--connections", connections,
                               "--streams", streams)
                    if theirs and ours:
                        ratios.append(ours["requests_per_second"] / theirs["requests_per_second"])
                        best = (f"{ours['requests_per_second']:.0f}/s at "
                                f"{ours['cpu_microseconds_per_request']} us, h2load "
                                f"{theirs['requests_per_second']:.0f}/s at "
                                f"{theirs['cpu_microseconds_per_request']:.2f} us")
                if ratios:
                    ratio = statistics.median(ratios)
                    row(f">= {goal}" if goal else "", f"sender / h2load, {title} {connections}x{streams}",
                        f"{ratio:.2f}", best, ratio >= goal if goal else None)


def waiting(report):
    """What of a run was waiting for a processor, in words."""
    share, worst = (report.get(f"relay_run_queue_share{end}") for end in ("", "_of_worst_thread"))
    told = "?" if share is None else f"{share:.0%}, its worst thread {worst:.0%}"
    return f"in the run queue {told}; steal {report.get('steal_share', 0):.1%}"


def relay(folder):
    """The whole relay in front of nginx."""
    port, command = nginx(folder)
    with running(command, folder, answers(port)) as sink:
        pid = worker(sink.pid)
        common = ["relay", "--sink", f"https://127.0.0.1:{port}", "--ca", folder / "ca.pem", "--sink-pid", pid,
                  "--seconds", SECONDS]
        # Requests of one push need more of them at a time to keep a commit filled.
        for devices, goal, callers in [(10, 28_000, 64), (1, 15_000, 256)]:
            most = run(f"relay max x{devices}", *common, "--devices-per-request", devices, "--connections", callers)
            if not most:
                continue
            rate = most["pushes_per_second"]
            row(f">= {goal}", f"relay, pushes/s, {devices} a request", f"{rate / goal:.2f} of goal",
                f"{rate:.0f}/s; CPU us a push: relay {most['relay_cpu_microseconds_per_push']}, driver "
                f"{most['driver_cpu_microseconds_per_push']}, nginx {most.get('sink_cpu_microseconds_per_push', '?')}; "
                f"{waiting(most)}", rate >= goal)
            row("<= 64 MiB", f"relay, resident, {devices} a request", f"{most['relay_resident_mib_peak']:.0f} MiB",
                "peak under full load", most["relay_resident_mib_peak"] <= 64)
            # Half of what as many connections reach: with more of them a commit serves more requests, and more than
            # can be answered would only wait in the driver.
            same = run(f"relay max over {HALF_CONNECTIONS} x{devices}", *common, "--devices-per-request", devices,
                       "--connections", HALF_CONNECTIONS)
            reached = min(same["pushes_per_second"] if same else rate, goal)
            half = run(f"relay half x{devices}", *common, "--devices-per-request", devices, "--connections",
                       HALF_CONNECTIONS, "--rate", int(reached / 2))
            if half:
                row("<= 20 ms", f"relay, p99 at half load, {devices} a request", f"{half['p99_milliseconds']:.1f} ms",
                    f"{half['pushes_per_second']:.0f}/s of {reached:.0f} over {HALF_CONNECTIONS} connections, p50 "
                    f"{half['p50_milliseconds']}, max {half['max_milliseconds']}; {waiting(half)}; at most "
                    f"{half['most_requests_waiting']} requests beyond the connections",
                    half["p99_milliseconds"] <= 20)
                row("<= 64 MiB", f"relay, resident at half load, {devices} a request",
                    f"{half['relay_resident_mib_peak']:.0f} MiB", "peak", half["relay_resident_mib_peak"] <= 64)
            volatile = run(f"relay volatile x{devices}", *common, "--devices-per-request", devices, "--connections",
                           callers, "--volatile")
            if volatile:
                ratio = rate / volatile["pushes_per_second"]
                row(">= 0.8", f"durable / volatile, {devices} a request", f"{ratio:.2f}",
                    f"volatile {volatile['pushes_per_second']:.0f}/s", ratio >= 0.8)
            slow = run(f"relay slow sync x{devices}", *common, "--devices-per-request", devices, "--connections", 256,
                       "--preload", folder / "slowsync.so")
            if slow and volatile:
                row("", f"durable with 5 ms a sync / volatile, {devices} a request",
                    f"{slow['pushes_per_second'] / volatile['pushes_per_second']:.2f}",
                    f"{slow['pushes_per_second']:.0f}/s")


def round_trip():
    far = run("relay far away", "relay", "--round-trip", 80, "--seconds", 6, "--connections", 512,
              "--devices-per-request", 10)
    if far:
        ratio = far["ratio_to_allowed"]
        row(">= 0.9", "80 ms round trip / connections x window / round trip", f"{ratio:.2f}",
            f"{far['arrived_per_second']:.0f}/s over {far['connections']} connections, {far['allowed_per_second']}/s "
            "allowed", ratio >= 0.9)


def strangers():
    """One origin's requests that name another's devices, beside devices that nobody has."""
    told = run("strangers", "strangers", "--pairs", OPTIONS.get("PAIRS", "20000"))
    if told:
        distance = told["standard_errors_from_half"]
        row("0.5", "a stranger's answers: existing slower than nobody's", f"{told['share_existing_slower']:.3f}",
            f"{told['pairs']} pairs, {distance} standard errors from one half, medians "
            f"{told['median_microseconds_existing']} and {told['median_microseconds_nobodys']} us, "
            f"{told['different_answers']} answer", abs(distance) < 3.3 and told["different_answers"] == 1)


def modules(name):
    """Those of one protocol each, by its name: scripts/bench/<protocol>/<name>.py."""
    found = {}
    for file in sorted(HERE.glob(f"*/{name}.py")):
        spec = importlib.util.spec_from_file_location(f"{name}_{file.parent.name}", file)
        found[file.parent.name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(found[file.parent.name])
    return found


def of_protocols():
    """The parts that belong to one protocol each: `part(run, row)` in scripts/bench/<protocol>/part.py."""
    return {name: lambda _, module=module: module.part(run, row) for name, module in modules("part").items()}


def memory(folder):
    port, command = nginx(folder)
    with running(command, folder, answers(port)):
        count = int(OPTIONS.get("REGISTRATIONS", "1000000"))
        many = run("relay registrations", "relay", "--sink", f"https://127.0.0.1:{port}", "--ca", folder / "ca.pem",
                   "--seconds", 2, "--rate", 1000, "--registrations", count)
    if many:
        more = many["resident_mib_after_them"] - many["resident_mib_before_them"]
        row("<= 16 MiB", f"{count} registrations, resident", f"{more:+.1f} MiB",
            f"{many['resident_mib_before_them']} to {many['resident_mib_after_them']} MiB", more <= 16)


def backlog(folder):
    """One push past a lane that owes very many."""
    port, command = nginx(folder)
    with running(command, folder, answers(port)):
        for title, goal, options in [
                ("VoIP during the drain of 600,000", 1000, ["--owed", 600_000, "--origins", 100, "--probe", "voip"]),
                ("another origin's, one owing 100,000", 50, ["--owed", 100_000, "--origins", 1, "--probe", "normal"])]:
            past = run(f"backlog {title}", "backlog", "--sink", f"https://127.0.0.1:{port}", "--ca", folder / "ca.pem",
                       "--goal", goal, *options)
            if past:
                row(f"<= {goal} ms", f"{title}: request to answer, max of {past['probes']}",
                    f"{past['answered_max_milliseconds']:.1f} ms",
                    f"p50 {past['answered_p50_milliseconds']}, p99 {past['answered_p99_milliseconds']}; on the disk "
                    f"after p50 {past['committed_p50_milliseconds']}, max {past['committed_max_milliseconds']}; "
                    f"{past['drained_per_second']}/s drained",
                    past["answered_max_milliseconds"] <= goal)


def outage():
    """Ten minutes without the service at 1,000 pushes a second, on a manual clock."""
    for fault in ["unreachable", "refusing"]:
        out = run(f"outage {fault}", "outage", "--rate", 1000, "--minutes", 10, "--fault", fault)
        if out:
            row("0 lost", f"outage of 10 min at 1,000/s, {fault}", f"{out['lost']} lost, {out['doubled']} doubled",
                f"{out['delivered']} delivered; {out['pushes_in_memory_peak']} of {out['places_in_lane']} places in "
                f"memory, {out['resident_mib_more_at_peak']} MiB more resident, outbox "
                f"{out['outbox_mib_peak']} MiB; {out['attempts']} attempts, drained at {out['drained_per_second']}/s",
                out["lost"] == 0 and out["doubled"] == 0
                and out["pushes_in_memory_peak"] <= out["places_in_lane"])


def counted(folder):
    """Instructions, allocations, locks and system calls of a push."""
    missing = [tool for tool in ["valgrind", "callgrind_control", "strace", "objcopy"] if shutil.which(tool) is None]
    if missing:
        raise NotServing(f"no {', '.join(missing)}: scripts/setup peers installs them")
    port, command = nginx(folder)
    with running(command, folder, answers(port)):
        for protocol in modules("instructions").values():
            protocol.part(folder, SEALBELL, BENCH, port, OPTIONS, row, raw,
                          lambda line: print(f"  {line}", file=sys.stderr, flush=True))


def windows(report):
    """The windows of `bench shared`, each as a mapping."""
    found = []
    for number in range(report["windows"]):
        start = f"window_{number}_"
        found.append({key[len(start):]: value for key, value in report.items() if key.startswith(start)})
    return found


def cost(window):
    """CPU time of a push in microseconds: relays and, where there is one, the database server."""
    return window["relay_cpu_microseconds_per_push"] + window.get("database_cpu_microseconds_per_push", 0)


def middle(some, of):
    return statistics.median(of(window) for window in some)


def stores(part, use):
    """Calls `use` for each kind of store: its name, its options, and a reader that holds an old snapshot."""
    asked = OPTIONS.get("STORE", "sqlite,postgres").split(",")
    if "sqlite" in asked:
        script = ("import sqlite3,time; c=sqlite3.connect('{state}/relay.sqlite',isolation_level=None); c.execute("
                  "'BEGIN'); c.execute('SELECT count(*) FROM outbox').fetchone(); time.sleep(86400)")
        use("SQLite", [], f'exec python3 -c "{script}"')
    if "postgres" in asked:
        with database() as (url, pid):
            reader = (f"exec psql '{url}' -q -c 'BEGIN ISOLATION LEVEL REPEATABLE READ' -c "
                      "'SELECT count(*) FROM outbox' -c 'SELECT pg_sleep(86400)'")
            use("PostgreSQL", ["--store", url, "--database-pid", pid], reader)


def growth(folder):
    """What a push costs with a thousand, a hundred thousand, a million registrations."""
    sizes = OPTIONS.get("SIZES", "1000,100000,1000000")
    port, command = nginx(folder)

    def use(title, options, _):
        told = run(f"growth {title}", "shared", "--sink", f"https://127.0.0.1:{port}", "--ca", folder / "ca.pem",
                   "--registrations", sizes, "--windows", OPTIONS.get("WINDOWS", "5"), "--seconds", SECONDS, "--rate",
                   OPTIONS.get("RATE", "2000"), *options, deadline=7200)
        if not told:
            return
        steps = [(int(size), [w for w in windows(told) if w["registrations"] == int(size)])
                 for size in sizes.split(",")]
        costs = [middle(of, cost) for _, of in steps]
        tails = [middle(of, lambda w: w["p99_milliseconds"]) for _, of in steps]
        row("<= 1.1", f"cost of a push at {sizes} registrations, {title}", f"{costs[-1] / costs[0]:.2f}",
            f"CPU us a push {', '.join(f'{value:.1f}' for value in costs)}; p99 ms "
            f"{', '.join(f'{value:.1f}' for value in tails)} at {told['asked_rate']}/s", costs[-1] / costs[0] <= 1.1)

    with running(command, folder, answers(port)):
        stores("growth", use)


def ageing(folder):
    """What a push costs after so many minutes at 2,000 a second while a reader holds an old snapshot."""
    minutes = float(OPTIONS.get("MINUTES", "60"))
    # SQLite's log grows by some 0.8 GB a minute while a reader holds it.
    free = int(OPTIONS.get("FREE", max(30, minutes)))
    port, command = nginx(folder)

    def use(title, options, reader):
        told = run(f"ageing {title}", "shared", "--sink", f"https://127.0.0.1:{port}", "--ca", folder / "ca.pem",
                   "--registrations", 10_000, "--windows", max(6, int(minutes * 2)), "--seconds", 30, "--rate",
                   OPTIONS.get("RATE", "2000"), "--beside", reader, "--needs-free", free, "--free-at", folder,
                   *options, deadline=minutes * 60 * 2 + 900)
        if not told:
            return
        all_of = windows(told)
        first, last = all_of[:3], all_of[-3:]
        ratio = middle(last, cost) / middle(first, cost)
        tail = [middle(some, lambda w: w["p99_milliseconds"]) for some in (first, last)]
        pace = [middle(some, lambda w: w["driver_cpu_microseconds_per_push"]) for some in (first, last)]
        row("<= 1.25", f"cost of a push after {minutes:.0f} min at {told['asked_rate']}/s beside an old snapshot, "
            f"{title}", f"{ratio:.2f}", f"CPU us a push {middle(first, cost):.1f}, then {middle(last, cost):.1f}; "
            f"p99 ms {tail[0]:.1f}, then {tail[1]:.1f}; the driver's own, which tells the machine's speed, "
            f"{pace[0]:.1f}, then {pace[1]:.1f}", ratio <= 1.25)

    with running(command, folder, answers(port)):
        stores("ageing", use)


def relays(folder):
    """One, two and four relays on one PostgreSQL, turn by turn, and PostgreSQL beside SQLite: medians of rounds."""
    port, command = nginx(folder)
    rounds = {}

    def use(title, options, _):
        counts = [1] if title == "SQLite" else [1, 2, 4]
        for round_, count in itertools.product(range(int(OPTIONS.get("ROUNDS", "3"))), counts):
            told = run(f"{title} x{count}", "shared", "--sink", f"https://127.0.0.1:{port}", "--ca",
                       folder / "ca.pem", "--relays", count, "--connections", CALLERS // count, "--windows", 5,
                       "--seconds", SECONDS, "--rate", "max",
                       *(options if (round_, count) == (0, 1) or title == "SQLite" else renewed(options)))
            if told:
                # The first window warms caches up.
                later = windows(told)[1:]
                rounds.setdefault((title, count), {})[round_] = (
                    middle(later, lambda w: 1e6 / w["relay_cpu_microseconds_per_push"]),
                    middle(later, lambda w: w["pushes_per_second"]), middle(later, cost))

    def renewed(options):
        """The same server, a database of its own."""
        return ["--store", fresh(options[1]), *options[2:]]

    with running(command, folder, answers(port)):
        stores("relays", use)
    ones = rounds.get(("PostgreSQL", 1), {})
    for count in [2, 4]:
        both = [(many, ones[number]) for number, many in rounds.get(("PostgreSQL", count), {}).items()
                if number in ones]
        if both:
            ratios = sorted(many[0] / one[0] for many, one in both)
            ratio = statistics.median(ratios)
            many, one = ([statistics.median(told[place] for told in side) for place in range(2)]
                         for side in zip(*both))
            row(">= 0.9", f"pushes per CPU second of relays, {count} on one PostgreSQL / one", f"{ratio:.2f}",
                f"{ratios[0]:.2f} to {ratios[-1]:.2f} in {len(ratios)} rounds; {many[0]:.0f} and {one[0]:.0f}; "
                f"{many[1]:.0f}/s and {one[1]:.0f}/s in all, on the machine's cores with server, sink and driver",
                ratio >= 0.9)
    if ones and rounds.get(("SQLite", 1)):
        one, file = ([statistics.median(told[place] for told in rounds[name, 1].values()) for place in range(3)]
                     for name in ("PostgreSQL", "SQLite"))
        row("", "PostgreSQL / SQLite, pushes/s with one relay", f"{one[1] / file[1]:.2f}",
            f"{one[1]:.0f}/s and {file[1]:.0f}/s; CPU us a push with the server's {one[2]:.1f} and {file[2]:.1f}")


def machine():
    model = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return f"{os.cpu_count()} x {model.group(1) if model else platform.machine()}, {platform.release()}"


def main():
    parts = {"growth": growth, "relays": relays, "ageing": ageing, "sender": sender, "relay": relay, "far": lambda _: round_trip(), "strangers": lambda _: strangers(),
             **of_protocols(),
             "memory": memory, "backlog": backlog, "instructions": counted,
             "outage": lambda _: outage()}
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = pathlib.Path(name)
        certificates(folder)
        (folder / "tokens").write_text("\n".join(TOKENS))
        subprocess.run(["gcc", "-O2", "-fPIC", "-shared", "-o", folder / "slowsync.so", HERE / "slowsync.c", "-ldl"],
                       check=True)
        for part, measure in parts.items():
            if ONLY and part not in ONLY.split(","):
                continue
            try:
                measure(folder)
            except (NotServing, subprocess.SubprocessError, OSError) as why:
                failed.append(f"{part}: {why}")
    now = datetime.datetime.now(datetime.timezone.utc)
    print(f"bench, {now:%Y-%m-%d %H:%M} UTC, {machine()}")
    print("load before: " + " ".join(f"{value:.2f}" for value in os.getloadavg()))
    print(f"{'result':>16}  {'goal':<11} {'':<7} what")
    for ratio, goal, verdict, title, note in rows:
        print(f"{ratio:>16}  {goal:<11} {verdict:<7} {title}: {note}")
    for line in failed:
        print(f"{'failed':>16}  {'':<11} {'':<7} {line}")
    if "OUT" in OPTIONS:
        pathlib.Path(OPTIONS["OUT"]).write_text(json.dumps(raw, indent=1) + "\n")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    for tool in ["nginx", "nghttpd", "h2load", "openssl", "gcc"]:
        if shutil.which(tool) is None:
            sys.exit(f"bench: no {tool} on this machine")
    main()
