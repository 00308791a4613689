"""What a push costs in instructions, allocations, locks and system calls: figures that repeat on a noisy machine.

A relay of its own stands in front of a sink, and `sealbell-bench relay` keeps it busy with Zulip's notify calls.
Three windows:

1. no instrument: processor time and context switches from /proc, pushes from the relay's metrics;
2. `strace -c -f`: system calls, pushes from the metrics;
3. another run of the relay, under `valgrind --tool=callgrind`, which is switched on for the window alone:
   instructions of user space and calls of functions. The same instrument counts the pushes of the window: those
   whose rows were sealed and those that were sent, of which it takes the mean, because as many as the driver has
   connections are under way at either end. The metrics' count has to agree within a quarter: they are read a moment
   before and after, when the relay is several times as fast.
"""
import base64
import collections
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import threading
import time
import urllib.request

from servers import NotServing

# Under valgrind nothing runs beside anything else, and a relay starts in seconds instead of tenths.
READY_SECONDS = 180
END_SECONDS = 60
# What the driver offers a relay under valgrind in a second: more than it can take, so that every connection waits.
OFFERED_UNDER_VALGRIND = 2000
# How far the metrics' count may be from callgrind's.
AGREEMENT = 0.25
# And for what passes between the reading and the switch.
EDGE = 1500
REPEATS_WITHIN = 0.03

CONFIGURATION = """\
state: state
store: {{ url: "sqlite:relay.sqlite", keys: storage.keys }}
listeners:
  public: {{ bind: "127.0.0.1:0", serves: [zulip-load] }}
  admin: {{ bind: "127.0.0.1:0" }}
log: {{ level: error, format: json }}
limits: {{ pushes_per_minute: 0 }}
apps:
  load:
    apns:
      team: A1B2C3D4E5
      key_id: F6G7H8I9J0
      key_file: apns.p8
      bundles: [org.example.load]
      environment: production
      url: "https://127.0.0.1:{port}"
      ca: ca.pem
instances:
  zulip-load: {{ protocol: zulip, apps: [load], keys: bouncer.keys, sign_up: open }}
"""

# What callgrind's calls are counted as, by the name of what is called (versions and levels of recursion cut off).
CALLS = {
    "malloc": ["malloc", "calloc"],
    "free": ["_int_free"],
    "retain + release": ["swift_retain", "swift_retain_n", "swift_release", "swift_release_n"],
    "mutex locks": ["pthread_mutex_lock"],
    "swift_beginAccess": ["swift_beginAccess"],
    "task switches": ["swift_task_switch"],
    "tasks made": ["swift_task_create"],
    "continuations": ["swift_continuation_init"],
    "SipHashes": ["$ss6HasherV9_finalizeSiyF", "$ss6HasherV5_hash4seed_S2i_s6UInt64VtFZTf4nnd_nTm"],
}
SEALED = "crypto_aead_xchacha20poly1305_ietf_encrypt"
SENT = "nghttp2_submit_request"
SHOWN_SYSTEM_CALLS = 6


class Relay:
    """A relay with a new state, ready to be asked."""

    def __init__(self, program, folder, port, authority, wrapper=(), environment=None):
        self.folder = folder
        folder.mkdir()
        (folder / "state").mkdir(mode=0o700)
        (folder / "ca.pem").write_bytes(authority.read_bytes())
        (folder / "sealbell.yaml").write_text(CONFIGURATION.format(port=port))
        self.secret("apns.p8", openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"))
        private = openssl("genpkey", "-algorithm", "X25519", "-outform", "DER")
        public = openssl("pkey", "-inform", "DER", "-pubout", "-outform", "DER", given=private)
        # In either form the key itself is what stands last.
        pair = {base64.b64encode(public[-32:]).decode(): base64.b64encode(private[-32:]).decode()}
        self.secret("bouncer.keys", json.dumps(pair).encode() + b"\n")
        with open(folder / "relay.log", "wb") as log:
            self.process = subprocess.Popen(
                [*map(str, wrapper), program, "serve", "--config", "sealbell.yaml", "--ends-with-input"], cwd=folder,
                stdin=subprocess.PIPE, stdout=log, stderr=log, env={**os.environ, **(environment or {})})
        self.pid = self.process.pid
        try:
            self.metrics = self.ready() + "/metrics"
        except NotServing:
            self.stop()
            raise

    def secret(self, name, text):
        (self.folder / name).touch(mode=0o600)
        (self.folder / name).write_bytes(text)

    def ready(self):
        ends = time.monotonic() + READY_SECONDS
        while time.monotonic() < ends and self.process.poll() is None:
            with contextlib.suppress(OSError, ValueError, KeyError):
                return json.loads((self.folder / "state/run.json").read_text())["urls"]["admin"]
            time.sleep(0.05)
        said = (self.folder / "relay.log").read_text(errors="replace")[-300:]
        raise NotServing(f"the relay is not ready: {said}")

    def pushes(self):
        """Requests that went to the push service so far."""
        with urllib.request.urlopen(self.metrics, timeout=60) as answer:
            text = answer.read().decode()
        return sum(int(float(value)) for value in re.findall(r"(?m)^sealbell_push_requests_total\S* (\S+)$", text))

    def seconds(self):
        """Processor time so far, all threads that are or were."""
        fields = pathlib.Path(f"/proc/{self.pid}/stat").read_text().rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def switches(self):
        """Context switches so far, by thread."""
        found = {}
        for task in pathlib.Path(f"/proc/{self.pid}/task").iterdir():
            with contextlib.suppress(OSError):
                told = re.findall(r"ctxt_switches:\s+(\d+)", (task / "status").read_text())
                found[task.name] = sum(map(int, told))
        return found

    def stop(self):
        self.process.stdin.close()
        try:
            self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def openssl(*arguments, given=None):
    return subprocess.run(["openssl", *arguments], input=given, capture_output=True, check=True).stdout


@contextlib.contextmanager
def load(bench, relay, devices, connections, rate, seconds, registered):
    """The driver, from the moment in which its requests begin; ended by its process id."""
    command = [bench, "relay", "--at", relay.folder / "state", "--devices-per-request", devices, "--connections",
               connections, "--rate", rate, "--seconds", seconds, "--devices", registered, "--json"]
    driver = subprocess.Popen([*map(str, command)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                              stdin=subprocess.DEVNULL)
    try:
        said = ""
        for line in driver.stderr:
            said = line
            if "made ready" in line:
                break
        else:
            raise NotServing(f"the driver: {said.strip()}")
        # What it says from here on must not fill the pipe.
        threading.Thread(target=driver.stderr.read, daemon=True).start()
        yield driver
    finally:
        driver.terminate()
        driver.wait()


def plain(relay, seconds):
    """Window 1."""
    before = relay.pushes(), relay.seconds(), relay.switches(), time.monotonic()
    time.sleep(seconds)
    after = relay.pushes(), relay.seconds(), relay.switches(), time.monotonic()
    count = after[0] - before[0]
    if count <= 0:
        raise NotServing("no push in the window")
    switched = sum(value - before[2].get(name, 0) for name, value in after[2].items())
    return {"pushes": count, "pushes_per_second": round(count / (after[3] - before[3])),
            "cpu_microseconds": round((after[1] - before[1]) * 1e6 / count, 1),
            "context_switches": round(switched / count, 2)}


def system_calls(relay, seconds):
    """Window 2: calls of a push, by kind, most first."""
    told = relay.folder / "strace"
    tracer = subprocess.Popen(["strace", "-c", "-f", "-U", "calls,name", "-o", str(told), "-p", str(relay.pid)],
                              stderr=subprocess.PIPE, text=True)
    try:
        # It names the threads that it is attached to.
        said = tracer.stderr.readline()
        if "attached" not in said:
            raise NotServing(f"strace: {said.strip()}")
        threading.Thread(target=tracer.stderr.read, daemon=True).start()
        before = relay.pushes()
        time.sleep(seconds)
        count = relay.pushes() - before
    finally:
        tracer.send_signal(signal.SIGINT)
        tracer.wait()
    if count <= 0:
        raise NotServing("no push in the window of strace")
    found = {name: int(number) for number, name in re.findall(r"(?m)^\s*(\d+) ([a-z_0-9]+)$", told.read_text())
             if name != "total"}
    if not found:
        raise NotServing(f"strace: {told.read_text()[:200]}")
    return {"pushes": count, "a_push": {name: round(number / count, 3) for name, number in
                                        sorted(found.items(), key=lambda item: -item[1])}}


def read_callgrind(path):
    """Sums of one output (format of callgrind, with positions left as they are).

    Returns instructions by (function, object), and calls by (caller's object, called function).
    """
    names = {"fn": {}, "ob": {}}
    own, calls = collections.Counter(), collections.Counter()
    here, there, called, count = "", "", "", None

    def name(kind, text):
        number, _, new = text.partition(" ")
        if not number.startswith("("):
            return text
        if new:
            names[kind][number] = new
        return names[kind][number]

    for line in path.read_text().splitlines():
        key, _, value = line.partition("=")
        if key == "ob":
            here = there = name("ob", value)
        elif key == "fn":
            function, there = plain_name(name("fn", value)), here
        elif key == "cob":
            there = name("ob", value)
        elif key == "cfn":
            called = plain_name(name("fn", value))
        elif key == "calls":
            count = int(value.split()[0])
        elif line and (line[0].isdigit() or line[0] in "+-*"):
            if count is not None:
                calls[here, called] += count
                count, there = None, here
            else:
                own[function, here] += int(line.split()[1])
    return own, calls


def plain_name(text):
    """Without version and level of recursion: `pthread_mutex_lock@@GLIBC_2.2.5`, `swift_release'2`."""
    return re.sub(r"@@?GLIBC.*|'\d+$", "", text)


def counted(program, relay_folder, port, authority, bench, devices, connections, seconds, registered, library):
    """Window 3."""
    wrapper = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--callgrind-out-file=callgrind.out",
               "--vgdb-poll=20000"]
    relay = Relay(program, relay_folder, port, authority, wrapper, {"LD_PRELOAD": str(library)})

    def control(*words):
        told = subprocess.run(["callgrind_control", *words, str(relay.pid)], capture_output=True, text=True,
                              timeout=120)
        if told.returncode or "Error" in told.stdout + told.stderr:
            raise NotServing(f"callgrind_control {' '.join(words)}: {(told.stdout + told.stderr).strip()[-200:]}")

    try:
        with load(bench, relay, devices, connections, OFFERED_UNDER_VALGRIND, 15 + seconds, registered):
            time.sleep(4)
            before = relay.pushes()
            control("-i", "on")
            time.sleep(seconds)
            control("-i", "off")
            seen = relay.pushes() - before
            control("-d", "window")
    finally:
        relay.stop()
    output = max(relay.folder.glob("callgrind.out*"), key=lambda path: path.stat().st_size)
    own, calls = read_callgrind(output)
    called = collections.Counter()
    for (_, function), count in calls.items():
        called[function] += count
    count = (called[SEALED] + called[SENT]) / 2
    if not count or abs(seen - count) > AGREEMENT * count + EDGE:
        raise NotServing(f"callgrind saw {count} pushes, the metrics {seen}")
    report = {"pushes": round(count), "sealed": called[SEALED], "sent": called[SENT], "by_metrics": seen,
              "instructions": round(sum(own.values()) / count), "output": str(output)}
    for title, functions in CALLS.items():
        report[title] = round(sum(called[function] for function in functions) / count, 2)
    report["SQLite's locks"] = round(sum(number for (caller, function), number in calls.items()
                                         if function == "pthread_mutex_lock" and "libsqlite3" in caller) / count, 2)
    report["clearing memory"] = round(sum(value for (function, _), value in own.items()
                                          if function.startswith("__memset_")) / count)
    return report


def part(folder, program, bench, port, options, row, raw, say):
    """All windows for ten pushes a request and one, and for one at 1,500/s; rows and raw figures."""
    seconds = float(options.get("SECONDS", "15"))
    rounds = int(options.get("ROUNDS", "2"))
    registered = int(options.get("DEVICES", "2000"))
    authority = folder / "ca.pem"
    library = folder / "sigsuspend.so"
    source = pathlib.Path(__file__).resolve().parent.parent / "sigsuspend.c"
    subprocess.run(["gcc", "-O2", "-fPIC", "-shared", "-o", library, source], check=True)
    # Valgrind 3.19 does not read DWARF 5; names of functions are in the symbol table.
    bare = folder / "bare"
    bare.mkdir()
    subprocess.run(["objcopy", "--strip-debug", program, bare / "sealbell"], check=True)

    def keep(name, report):
        raw.setdefault(f"instructions {name}", []).append(report)
        say(f"{name}: {json.dumps(report)}")
        return report

    for devices, goal, connections, rate in [
            (10, 205_000, 64, "max"), (1, 330_000, 256, "max"), (1, None, 256, 1500)]:
        title = f"{devices} a request" + ("" if rate == "max" else f", {rate}/s")
        relay = Relay(program, folder / f"plain-{devices}-{rate}", port, authority)
        try:
            with load(bench, relay, devices, connections, rate, 2 * seconds + 8, 10_000):
                time.sleep(2)
                light = keep(f"plain, {title}", plain(relay, seconds))
                # The relay forbids everybody of its own user to look into it.
                calls = None
                if os.geteuid() == 0:
                    calls = keep(f"system calls, {title}", system_calls(relay, max(3, seconds / 2)))
        finally:
            relay.stop()
        row("", f"relay's CPU a push, {title}", f"{light['cpu_microseconds']} us",
            f"{light['pushes_per_second']}/s; {light['context_switches']} context switches a push")
        if calls:
            a_push = calls["a_push"]
            shown = ", ".join(f"{name} {number:.2f}" for name, number in list(a_push.items())[:SHOWN_SYSTEM_CALLS])
            row("", f"system calls a push, {title}", f"{sum(a_push.values()):.2f}",
                f"{shown}; fdatasync {a_push.get('fdatasync', 0):.3f}; of {calls['pushes']} pushes")
        else:
            row("", f"system calls a push, {title}", "not counted", "strace must be root's here")
        if goal is None:
            continue
        found = []
        for number in range(rounds):
            place = folder / f"counted-{devices}-{number}"
            # Twice as long, since it sees a thirtieth of the pushes.
            found.append(keep(f"callgrind, {title}", counted(
                bare / "sealbell", place, port, authority, bench, devices, connections, 2 * seconds, registered,
                library)))
            if "KEEP" in options:
                output = pathlib.Path(found[-1]["output"])
                (pathlib.Path(options["KEEP"]) / f"callgrind-{devices}-{number}.out").write_bytes(output.read_bytes())
        all_of = [report["instructions"] for report in found]
        last = found[-1]
        middle = sum(all_of) / len(all_of)
        row(f"<= {goal:,}", f"instructions a push, {title}", f"{middle:,.0f}",
            f"{', '.join(f'{value:,}' for value in all_of)}; of them clearing memory {last['clearing memory']:,}; "
            f"{last['pushes']} pushes in a window", middle <= goal)
        row("", f"calls a push, {title}", f"{last['malloc']:.0f} malloc", ", ".join(
            f"{last[name]} {name}" for name in [*CALLS, "SQLite's locks"] if name != "malloc"))
        if len(all_of) > 1:
            spread = (max(all_of) - min(all_of)) / middle
            row(f"<= {REPEATS_WITHIN:.0%}", f"instructions a push differ between runs, {title}", f"{spread:.1%}",
                f"{len(all_of)} runs", spread <= REPEATS_WITHIN)
