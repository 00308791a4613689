"""Rows in which an operator's own tools judge what the guide tells an operator to do."""
import os
import re
import shutil
import subprocess

from tools import SEALBELL, Failed, guide_block, need, version

# systemd's own scale ends at 10; below 2 it says OK.
EXPOSURE_LIMIT = 2.0


def systemd(folder):
    need("systemd-analyze")
    unit = folder / "sealbell.service"
    program = folder / "sealbell"
    os.symlink(shutil.which(SEALBELL) or SEALBELL, program)
    unit.write_text(guide_block(
        "ini", *((f"{key}=/usr/local/bin/sealbell", f"{key}={program}") for key in ("ExecStart", "ExecReload")),
        guide="zulip"))
    socket = folder / "sealbell.socket"
    socket.write_text(guide_block("ini", guide="zulip", place=1))
    told = subprocess.run(
        ["systemd-analyze", "verify", str(unit), str(socket)], capture_output=True, text=True)
    if told.returncode or told.stderr.strip():
        raise Failed(told.stderr.strip() or f"systemd-analyze verify ended with {told.returncode}")
    told = subprocess.run(["systemd-analyze", "security", "--offline=yes", "--no-pager", str(unit)],
                          capture_output=True, text=True)
    exposure = re.search(r"exposure level for \S+ (\d+\.\d+)", told.stdout)
    if exposure is None or float(exposure.group(1)) > EXPOSURE_LIMIT:
        raise Failed(f"exposure {exposure and exposure.group(1)}: {told.stderr.strip()[-200:]}")
    return ("systemd " + version(["systemd-analyze", "--version"], r"systemd (\d+)"),
            f"the guide's units are sound, exposure {exposure.group(1)} of 10; never started here")


ROWS = [("systemd reads the guide's unit", systemd)]
