"""Clocks that are ahead: what a program needs in its environment, so that its wall clock is days ahead.

The monotonic clock stays as it is, so that waiting takes its time. A library of ours is preloaded, because Debian's
faketime stands in every wait of a program too, and a server of many threads may then wait for ever.
"""
import functools
import pathlib
import shutil
import subprocess
import tempfile

from tools import HERE, NotRunnable

DAY_SECONDS = 86_400


@functools.cache
def library():
    """Made once; it goes with the process that made it."""
    compiler = next((name for name in ("cc", "clang") if shutil.which(name)), None)
    if compiler is None:
        raise NotRunnable("no C compiler on this machine")
    folder = tempfile.TemporaryDirectory(prefix="clocks-")
    library.folder = folder
    file = pathlib.Path(folder.name) / "clock_ahead.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-Wall", "-o", file, HERE / "clock_ahead.c"], check=True)
    return file


def ahead(days):
    """Environment variables for a program whose clock is so many days ahead, a fraction too; none for 0."""
    if not days:
        return {}
    return {"LD_PRELOAD": str(library()), "CLOCK_AHEAD_SECONDS": str(round(days * DAY_SECONDS))}
