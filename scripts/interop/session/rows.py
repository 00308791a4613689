"""Session's rows: PyNaCl as a device, and pyzmq as the chain daemon and the storage nodes."""
from tools import later

ROWS = later("session.device", ["PyNaCl as a Session device"])
ROWS += later("session.nodes", ["pyzmq as a storage node"])
ROWS += later("session.group", ["PyNaCl as a group of many"])
