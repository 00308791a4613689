"""Row in which PyNaCl is the members of a group: more of them than one signer may have phones, one who means ill, and
ends that were signed before what they meet.
"""
import os
import secrets

from tools import expect, relay
from .network import network
from .nodes import new_hash
from .phone import GROUP, USER, Account, Door, Phone, Services

MEMBERS = 70
# More than a signer may ask for in a minute.
MADE_UP = 40
NAMESPACES = [-11, 11, 12, 13, 14]


class Member(Account):
    """Somebody whom a group lets watch it."""

    def __init__(self, group):
        super().__init__(GROUP, delegates=True)
        self.key, self.public, self.id = group.key, group.public, group.id
        self.token_signature = group.key.sign(self.token).signature


def group(folder):
    with network() as swarm, relay(folder, *swarm.settings) as run:
        door, services = Door(run), Services(run)
        owner = Account(GROUP)
        ill, *members = [Member(owner) for _ in range(MEMBERS)]
        refused = 0
        # As fast as it is answered: an allowance of the account's own would be gone now.
        for _ in range(MADE_UP):
            refused += "error" in door.plain("/subscribe", Phone(ill, NAMESPACES).subscribe())
        expect(refused > 0, True, f"{MADE_UP} tokens of one signer in a moment are too many")
        phones = [Phone(member, NAMESPACES) for member in members]
        for phone in phones:
            expect(door.plain("/subscribe", phone.subscribe()).get("added"), True, "a member's subscription")
        swarm.watched(phones[-1])
        hash, message = new_hash(), os.urandom(300)
        swarm.store(owner, hash, message, 11)
        wanted = {phone.token for phone in phones}
        found = set()
        # The made-up ones are at the simulated service as good as any.
        for each in services.arrived("production", len(phones) + MADE_UP - refused):
            found.add(each["token"].lower())
        expect(len(wanted - found), 0, "members who were not woken")

        # An end that was signed before the subscription ends nothing.
        late = Phone(Account(USER))
        expect(door.plain("/subscribe", late.subscribe()).get("added"), True, "a subscription")
        signed_at = late.signed_at
        late.signed_at -= 60
        told = door.plain("/unsubscribe", late.unsubscribe())
        expect((told.get("removed"), told.get("success")), (None, None), "an end signed a minute before")
        expect(type(told.get("error")), int, "an end signed a minute before")
        late.signed_at = signed_at
        swarm.watched(late)
        swarm.store(late.account, new_hash(), os.urandom(100))
        [each] = services.arrived("production", 1)
        expect(each["token"].lower(), late.token, "who was not ended")
        # A tag of any form means nothing where subkeys are off: 36 bytes, as session-android sent them.
        odd = Phone(Account(USER))
        body = {**odd.subscribe(), "subkey_tag": secrets.token_hex(36)}
        expect(door.plain("/subscribe", body).get("added"), True, "a stray tag")
    return None, f"{len(phones)} members beside one who tried {MADE_UP} tokens ({refused} refused): all woken; " \
        "an end signed before ends nothing"


ROWS = [("PyNaCl as a group of many", group)]
