"""Clocks that are ahead: what a process needs in its environment so that its wall clock is days ahead of the machine's.

The monotonic clock stays as it is, so that waiting takes its time.
"""
import subprocess

from tools import NotRunnable, need


def ahead(days):
    """Environment variables for a program whose clock is so many days ahead, a fraction too; none for 0.

    They are those that `faketime` gives to its program. The program is started with them and without `faketime`
    itself, which would stand between it and its signals.
    """
    if not days:
        return {}
    need("faketime")
    told = subprocess.run(["faketime", "--exclude-monotonic", "-f", f"{days:+g}d", "env", "-0"], capture_output=True)
    pairs = (entry.partition("=") for entry in told.stdout.decode().split("\0"))
    found = {name: value for name, _, value in pairs if name == "LD_PRELOAD" or name.startswith("FAKETIME")}
    if told.returncode or "LD_PRELOAD" not in found:
        raise NotRunnable("faketime does not say how it moves a clock")
    return found
