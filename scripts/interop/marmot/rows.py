"""Marmot's rows: foreign Nostr relays, and foreign code that looks up, wraps, publishes and unwraps."""
from . import at_relays, nostr, notices, rough

ROWS = nostr.ROWS + at_relays.ROWS + rough.ROWS + notices.ROWS
