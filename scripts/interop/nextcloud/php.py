"""Row in which Debian's PHP plays a Nextcloud server's half: it seals what we open, and opens what we seal."""
import json
import os
import re
import subprocess

from tools import HERE, Failed, need, swift_test, version


def php(*arguments):
    told = subprocess.run(["php", str(HERE / "nextcloud" / "server.php"), *map(str, arguments)], capture_output=True,
                          text=True, stdin=subprocess.DEVNULL, timeout=120)
    if told.returncode:
        raise Failed((told.stderr or told.stdout).strip()[-300:])
    return told.stdout


def both(folder):
    need("php")
    made, ours = folder / "php.json", folder / "ours.json"
    # They hold private keys of this run.
    os.umask(0o077)
    php("make", made)
    status, text = swift_test("PHPPeerTests", {"SEALBELL_PHP_FROM": str(made), "SEALBELL_PHP_INTO": str(ours)})
    if status or not ours.exists():
        raise Failed("our side: " + text.strip().splitlines()[-1])
    opened = int(re.match(r"\d+", php("check", made, ours)).group())
    sealed = len(json.loads(made.read_text())["sealed"])
    if not opened or not sealed:
        raise Failed("nothing was sealed")
    peer = version(["php", "-v"], r"PHP (\S+)")
    return f"PHP {peer} as a Nextcloud server", \
        f"{sealed} subjects of PHP's opened here, {opened} of ours there, forms and identifiers the same"


ROWS = [("PHP as a Nextcloud server", both)]
