"""How long a process waited for a processor: what a latency is made of on a machine that others use too."""
import contextlib
import pathlib
import threading
import time


def scheduling(pid):
    """Nanoseconds run and waited in the run queue, by thread (proc(5), `schedstat`); empty where there is none."""
    found = {}
    with contextlib.suppress(OSError):
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError, ValueError):
                ran, waited, *_ = (task / "schedstat").read_text().split()
                found[task.name] = int(ran), int(waited)
    return found


def processors():
    """Ticks of all processors, and of them those that another guest of the host had (`steal`)."""
    ticks = [int(word) for word in pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return sum(ticks), ticks[7]


class Waits:
    """Looks at the child of a process twice a second, from now to `told()`.

    A thread that ends between two looks takes its last half second along. The child's threads alone are read, not
    those of its children.
    """

    def __init__(self, parent):
        self.parent, self.first, self.last = parent, None, {}
        self.ticks, self.end = processors(), threading.Event()
        self.thread = threading.Thread(target=self.look, daemon=True)
        self.thread.start()

    def look(self):
        while True:
            with contextlib.suppress(OSError, IndexError, ValueError):
                children = pathlib.Path(f"/proc/{self.parent}/task/{self.parent}/children").read_text().split()
                found = scheduling(int(children[0]))
                self.first = found if self.first is None else self.first
                self.last.update(found)
            if self.end.wait(0.5):
                return

    def told(self):
        """Shares of the span: the child's threads that were ready and had to wait, of the time in which they ran or
        were ready; the same of the thread that waited longest; and what the host took from the machine."""
        self.end.set()
        self.thread.join()
        total, stolen = (after - before for before, after in zip(self.ticks, processors()))
        report = {"steal_share": round(stolen / max(1, total), 4)}
        spans = [(ran - begun[0], waited - begun[1]) for name, (ran, waited) in self.last.items()
                 for begun in [(self.first or {}).get(name, (0, 0))]]
        if spans and sum(map(sum, spans)) > 0:
            ran, waited = map(sum, zip(*spans))
            most = max(spans, key=lambda span: span[1])
            report["relay_run_queue_share"] = round(waited / (ran + waited), 3)
            report["relay_run_queue_share_of_worst_thread"] = round(most[1] / max(1, sum(most)), 3)
            report["relay_run_queue_seconds"] = round(waited / 1e9, 2)
        return report
