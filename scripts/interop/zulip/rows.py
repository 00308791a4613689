"""Zulip's rows: foreign code as device, origin and proxy, and operators' tools on the guide."""
from tools import later

from . import operators, sealing

ROWS = sealing.ROWS + later("zulip.conversation", [
    "Python as device and origin", "nginx as the guide's proxy", "Caddy as the guide's proxy"])
ROWS += later("zulip.zulip_habits", [
    "12.x: " + habit for habit in ("a sound in aps", "a leftover legacy row", "--rotate-key", "a slash too many",
                                   "set up anew", "a wrong method", "dead and back in one second")])
ROWS += later("zulip.zulip_forms", ["Python as server of three forms"])
PHONE = "Python as phone of our origin, "
ROWS += later("zulip.zulip_clients", [PHONE + "zap", PHONE + "zap, one process"])
ROWS += later("zulip.zulip_deployed", [
    PHONE + form + where for form in ("v12", "v11") for where in ("", ", one process")])
ROWS += later("zulip.zulip_bouncer", ["Python as relay of our origin", "Python as busy relay of our origin"])
ROWS += later("zulip.zulip_canaries", ["The memory of our idle origin"])
ROWS += later("zulip.origin_doors", ["OpenAPI of our origin", "nginx as the origin guide's proxy"])
ROWS += later("zulip.zulip_server", ["Python as server of our phone"])
ROWS += later("zulip.zulip_hostile", ["Python as hostile phone of our origin"])
ROWS += later("zulip.zulip_rival", ["Python as hostile server at our relay"])
ROWS += later("zulip.zulip_liar", ["Python as hostile relay of our origin"])
ROWS += later("zulip.zulip_waiting", ["Python as waiting client of our origin"])
ROWS += later("zulip.zulip_application", ["Python as application at our origin"])
ROWS += later("zulip.zulip_addresses", ["Two addresses, one dead, of our origin's relay"])
ROWS += later("zulip.zulip_restarts", ["Our origin's relay restarts",
                                         "A realm added while our origin's relay is away",
                                         "Python as late relay of our origin"])
ROWS += later("zulip.zulip_reports", ["Reports of servers like our origin"])
ROWS += later("zulip.zulip_hundred", ["A hundred phones on one account"])
ROWS += later("zulip.zulip_proxies", ["Silent proxies beside our origin's relay"])
ROWS += later("zulip.zulip_months", ["Our phones, origin and relay over months"])
ROWS += later("zulip.zulip_keys", ["Our phones of a key that is retired"])
ROWS += later("zulip.zulip_updates", [f"Our phones move from {former} to zap" for former in ("v12", "v11")])
ROWS += later("zulip.zulip_expired", ["Our phones behind a relay that stands still"])
ROWS += later("zulip.zulip_alike", ["Python as server that measures ids"])
ROWS += later("zulip.zulip_restored", ["Our origin's backup beside the original"])
ROWS += later("zulip.curls", ["curl as client"]) + operators.ROWS
