"""An authenticator for PyPI's nostr-relay, loaded by it: wraps are shown to their `p` alone (NIP-17, NIP-42).

Its own gives nobody a role that is not in its table, and knows no recipients.
"""
from nostr_relay.auth import Action, Authenticator

WRAP = 1059


class Anyone(Authenticator):
    """Who has proven a key, any key, may read and write."""

    async def authenticate(self, auth_event_json, challenge=""):
        return await super().authenticate(auth_event_json, challenge) | {"roles": set("arw")}


class Recipients(Authenticator):
    """Anybody may write, and ask for what is no wrap; for wraps, whom they are addressed to."""

    async def evaluate_target(self, auth_token, action, target):
        if action != Action.query.value:
            return True
        for query in target.filters:
            if query.kinds is not None and WRAP not in query.kinds:
                continue
            named = dict(query.tags or []).get("p", set())
            if not named or named != {auth_token.get("pubkey")}:
                return False
        return True
