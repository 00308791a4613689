"""Status's rows: coincurve, PyPI's protobuf and pycryptodome as phones, a sender and a push notification server."""
from tools import later

ROWS = later("status.payloads", ["coincurve as Status's clients and server"])
ROWS += later("status.network", ["coincurve over a Waku node"])
ROWS += later("status.strangers", ["coincurve as strangers of a Status relay"])
