#!/usr/bin/env python3
"""Reads a trace of the relay and shows, answer by answer, that its rows were on the disk before it left.

usage: trace.py TRACE LEDGER [--json]

TRACE   strace -f -yy -xx -s 70000 -e trace=write,writev,sendto,sendmsg,pwrite64,fsync,fdatasync,... of the relay.
LEDGER  one JSON object a line for each request that was answered:
        {"port": the driver's local port, "sequence": n-th request of that connection from 0, "status": 200,
         "pushes": ["<id>", ...]}. The ids are those of the rows of the pushes that the simulators received of
        that request (which were sent under other names, decision 0106); the id is a clear column of its row, so
        its bytes stand in the page that carries the row.

For every answered request with pushes, the reader finds
  P  the first write-ahead-log page that contains the id, and the end of the transaction it belongs to (a frame
     header whose "size after commit" is not 0, https://www.sqlite.org/fileformat2.html#walformat); one write may
     have many frames, or end in the middle of one,
  S  an fdatasync or fsync of the log that began after the last write of that transaction had returned, and
     returned 0,
  A  the first write of the answer to its socket ("HTTP/1.1 2..", the n-th on that connection),
and demands that S has returned before A begins. strace reports a call's return before the thread goes on, and a
call's begin before it runs, so the order of lines is the order of events. An id found in no page before A, or no
such S, is a violation. Exit status: 0 no violation and at least one answer proven; 1 otherwise.
"""
import json, re, sys

CALL = re.compile(r"^(\d+) +(\w+)\((.*)$")
RESUMED = re.compile(r"^(\d+) +<\.\.\. (\w+) resumed>(.*)$")
DESCRIPTOR = re.compile(r"^(\d+)<((?:->|[^>\\]|\\.)*)>")
HEX = re.compile(r"\\x([0-9a-f]{2})")
QUOTED = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
SENDS = {"write", "writev", "sendto", "sendmsg"}
SYNCS = {"fsync", "fdatasync"}
LOG_WRITES = {"pwrite64", "pwritev", "write", "writev"}


def unhex(text):
    return bytes.fromhex("".join(HEX.findall(text)))


def place(text):
    """The path or the socket behind a descriptor."""
    return HEX.sub(lambda hit: chr(int(hit.group(1), 16)), text)


class Transaction:
    def __init__(self):
        self.pages, self.ended = [], None      # ended: line on which its last write returned


class Trace:
    """What the lines say: transactions of the log, its syncs, answers by connection."""

    def __init__(self, path):
        self.transactions, self.syncs, self.answers = [], [], {}
        self.open = Transaction()
        self.commits = False
        self.page_bytes = 4096                 # of a log whose head was not seen
        self.page = (0, b"")                   # where the page that is being written begins, and what there is
        pending = {}
        with open(path, "r", encoding="ascii", errors="replace") as lines:
            for number, line in enumerate(lines):
                line = line.rstrip("\n")
                if hit := RESUMED.match(line):
                    if begun := pending.pop(hit.group(1), None):
                        self.returned(*begun, number, hit.group(3))
                elif hit := CALL.match(line):
                    thread, name, rest = hit.groups()
                    self.began(name, rest, number)
                    if rest.endswith("<unfinished ...>"):
                        pending[thread] = (name, rest, number)
                    else:
                        self.returned(name, rest, number, number, rest)

    def began(self, name, rest, number):
        target = DESCRIPTOR.match(rest)
        if not target or name not in SENDS:
            return
        peer = re.search(r"->(?:127\.0\.0\.1|\[::1\]|\[::ffff:127\.0\.0\.1\]):(\d+)\]", place(target.group(2)))
        if peer and "".join(QUOTED.findall(rest)[:1]).startswith("\\x48\\x54\\x54\\x50\\x2f"):
            self.answers.setdefault(int(peer.group(1)), []).append(number)

    def returned(self, name, rest, begin, end, tail):
        target = DESCRIPTOR.match(rest)
        if not target or not place(target.group(2)).endswith("-wal"):
            return
        result = re.search(r"= (-?\d+)", tail[tail.rfind(")"):] if ")" in tail else tail)
        if name in SYNCS and result and int(result.group(1)) == 0:
            self.syncs.append((begin, end))
        elif name in LOG_WRITES:
            at = re.search(r", (\d+)\)? *(?:<unfinished|=|$)", rest)
            self.logged(b"".join(unhex(part) for part in QUOTED.findall(rest)), int(at.group(1)), end)

    def logged(self, data, offset, end):
        """Bytes of the log: its head at 0, then frames of 24 bytes and a page each."""
        if offset == 0:
            if data[:3] == b"\x37\x7f\x06" and len(data) >= 12:     # a fresh log begins
                self.page_bytes = int.from_bytes(data[8:12], "big")
            data, offset = data[32:], 32
        while data:
            into = (offset - 32) % (24 + self.page_bytes)
            count = 24 - into if into < 24 else 24 + self.page_bytes - into
            part, data = data[:count], data[count:]
            if into == 0 and len(part) >= 8:                          # frame header: page, size after commit, ...
                self.commits = int.from_bytes(part[4:8], "big") != 0
            elif into >= 24:
                begun, held = self.page if self.page[0] + len(self.page[1]) == offset else (offset, b"")
                self.page = (begun, held + part)
                if len(part) == count:
                    self.open.pages.append(self.page[1])
                    self.page = (0, b"")
                    if self.commits:
                        self.open.ended = end
                        self.transactions.append(self.open)
                        self.open, self.commits = Transaction(), False
            offset += len(part)

    def carrier(self, needle, before):
        for transaction in self.transactions:
            if any(needle in page for page in transaction.pages):
                return transaction if transaction.ended < before else None
        return None

    def synced(self, after, before):
        return any(begin > after and end < before for begin, end in self.syncs)


def main():
    trace = Trace(sys.argv[1])
    with open(sys.argv[2]) as ledger:
        requests = [json.loads(line) for line in ledger if line.strip()]
    proven = unsynced = absent = unseen = rows = 0
    for request in requests:
        if request["status"] != 200 or not request["pushes"]:
            continue
        answers = trace.answers.get(request["port"], [])
        if request["sequence"] >= len(answers):
            unseen += 1
            continue
        left, fault = answers[request["sequence"]], None
        for identifier in request["pushes"]:
            rows += 1
            needle = bytes.fromhex(identifier.replace("-", ""))[8:]     # 62 random bits of the id
            transaction = trace.carrier(needle, left)
            if transaction is None:
                fault = fault or "absent"
            elif not trace.synced(transaction.ended, left):
                fault = fault or "unsynced"
        proven += fault is None
        unsynced += fault == "unsynced"
        absent += fault == "absent"
    good = proven > 0 and unsynced == absent == unseen == 0
    numbers = {"answers_proven": proven, "rows": rows, "answers_before_their_sync": unsynced,
               "answers_before_their_write": absent, "answers_not_in_trace": unseen,
               "transactions": len(trace.transactions), "log_syncs": len(trace.syncs), "passed": good}
    if "--json" in sys.argv:
        print(json.dumps(numbers))
    else:
        for name, value in numbers.items():
            print(f"{name.replace('_', ' '):28} {value}")
    sys.exit(0 if good else 1)


main()
