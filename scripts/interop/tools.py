"""What the rows of the interop run share: finding peers, starting servers, certificates, judgement."""
import contextlib
import importlib
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lib"))
from servers import NotServing as NotRunnable, answers, certificates, free_port, running

ROOT = HERE.parent.parent
SEALBELL = os.environ["SEALBELL_BIN"]
BENCH = os.environ.get("SEALBELL_BENCH") or os.path.join(os.path.dirname(SEALBELL), "sealbell-bench")


DEADLINE_SECONDS = 600


class Failed(Exception):
    """The peer and we do not agree; the text says on what."""


def expect(seen, wanted, what):
    """Raises unless both are equal. `what` names the step; values of a test run are no secrets."""
    if seen != wanted:
        raise Failed(f"{what}: {seen!r} instead of {wanted!r}")


def later(module_name, titles):
    """Rows of a module that needs a package from PyPI to be read at all."""
    try:
        return importlib.import_module(module_name).ROWS
    except ModuleNotFoundError as absent:
        def row(_):
            raise NotRunnable(f"PyPI's {absent.name} is not installed in .venv")
        return [(title, row) for title in titles]


def need(*names):
    for name in names:
        if shutil.which(name) is None:
            raise NotRunnable(f"no {name} on this machine")


def need_modules(*names):
    for name in names:
        if importlib.util.find_spec(name) is None:
            raise NotRunnable(f"PyPI's {name} is not installed in .venv")


def swift_test(suite, environment):
    """One suite of ours; what it printed."""
    try:
        told = subprocess.run(["swift", "test", "--skip-build", "--filter", suite], cwd=ROOT, capture_output=True,
                              text=True, stdin=subprocess.DEVNULL, timeout=DEADLINE_SECONDS,
                              env={**os.environ, **environment})
    except subprocess.TimeoutExpired as late:
        raise Failed(f"{suite} had not ended after {DEADLINE_SECONDS} s") from late
    text = told.stdout + told.stderr
    if not re.search(r"Test run with [1-9]\d* tests?", text):
        raise Failed(f"no test of {suite} ran: " + text.strip()[-200:])
    return told.returncode, text


def version(command, pattern):
    told = subprocess.run(command, capture_output=True, text=True)
    found = re.search(pattern, told.stdout + told.stderr)
    return found.group(1) if found else "?"


@contextlib.contextmanager
def relay(folder, *settings):
    """A sandbox relay of its own state on free ports; yields what its run file says."""
    state = folder / "state"
    command = [SEALBELL, "serve", "--sandbox", "--state", str(state)]
    for setting in ("listeners.public.bind=127.0.0.1:0", "listeners.admin.bind=127.0.0.1:0", *settings):
        command += ["--set", setting]
    file = state / "run.json"
    # Not ready: ours to answer for, so it is a failure.
    with running(command, folder, file.exists, "relay.log", absent=Failed) as process:
        yield json.loads(file.read_text())
        if process.poll() is not None:
            raise Failed(f"the relay ended with {process.returncode}")
    if process.returncode != 0:
        raise Failed(f"the relay ended with {process.returncode} when asked to stop")


def guide_block(language, *changes, guide, place=0):
    """The first code block of that language in an operator's guide, or the one behind it at that place, each change
    made exactly once.

    So what runs here is what the guide shows, but for ports and certificates.
    """
    text = (ROOT / "docs" / "guides" / f"{guide}.md").read_text()
    found = re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    if len(found) <= place:
        raise Failed(f"the guide shows {len(found)} blocks of {language}")
    block = found[place]
    for old, new in changes:
        if block.count(old) != 1:
            raise Failed(f"the guide's {language} has {old!r} {block.count(old)} times")
        block = block.replace(old, new)
    return block
