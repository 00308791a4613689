"""A row in which a bouncer's key is retired: the operator sees who uses it, apps that hold it are told to update, and
what is registered stays until then.
"""
import json

from tools import expect, guide_block
from .moved import Phone, World
from .zulip_clients import CODE

MONTH_DAYS = 31
UPDATE = "This version of the app can no longer receive notifications. Please update the app."


class KeyedWorld(World):
    """A relay with the guide's configuration and a key file that its operator tends."""

    def __init__(self, folder):
        super().__init__(folder)
        self.configuration = self.folder / "sealbell.yaml"
        self.configuration.write_text(guide_block(
            "yaml", ("127.0.0.1:8480", "127.0.0.1:0"), ("127.0.0.1:8481", "127.0.0.1:0"),
            ("sign_up: invite", "sign_up: open"), guide="zulip"))
        self.key_file = self.folder / "bouncer.keys"

    def adds_key(self):
        return self.command("keys", "new", "zulip", "--file", self.key_file).split()[-1]

    def reloads(self):
        self.command("reload", "--at", self.relay_state)

    def uses(self):
        """Of each key in force, how many registrations used it lately."""
        told = json.loads(self.command("keys", "list", "--at", self.relay_state, "--json"))
        # Keys in a file that the relay has not taken up, and those of the store, are listed without uses.
        return {each["public_key"]: each["uses"]["recent"] for each in told["keys"] if "uses" in each}

    def retires(self, key, *words, status=0):
        return self.command("keys", "retire", key, "--config", self.configuration, "--at", self.relay_state, *words,
                            status=status)

    def kept(self):
        return list(json.loads(self.key_file.read_text()))


def retired(folder):
    world = KeyedWorld(folder)
    old = world.adds_key()
    phones = [Phone(world, "old-v12", "v12", "apns"), Phone(world, "old-zap", "zap", "fcm")]
    newer = Phone(world, "newer", "zap", "apns")
    with world.living():
        for phone in phones:
            phone.join()
            phone.is_active("joined")
        expect("only key" in world.retires(old, "--anyway", status=1), True, "the only key")
        new = world.adds_key()
        expect(new in world.uses(), False, "a key before it is in force")
        world.reloads()
        newer.join("--bouncer-key", new)
        newer.is_active("joined with the new key")
        expect(world.uses(), {old: len(phones), new: 1}, "uses of the keys")
        said = world.retires(old, status=1)
        expect((f"{len(phones)} registrations used this key" in said, world.kept()), (True, [old, new]), said)
        expect("no such key" in world.retires(new[::-1], status=1), True, "an unknown key")
    with world.living(MONTH_DAYS):
        newer.starts()
        expect(world.uses(), {old: 0, new: 1}, "uses a month later")
        expect((world.retires(new, status=1) != "", world.kept()), (True, [old, new]), "a key in use")
        world.retires(old)
        expect((world.kept(), old in world.uses()), ([new], True), "a key that is out of the file")
        world.reloads()
        expect(list(world.uses()), [new], "keys in force")
        # What is registered stays.
        world.arrives([*phones, newer], "registered with the former key")
        for phone in phones:
            told_to_update(phone)
        arrives_behind_update(world, phones, newer, new)
        third = world.adds_key()
        world.reloads()
        world.retires(new, "--anyway")
        expect(world.kept(), [third], "a key that goes anyway")
    return None, f"{world.calls} commands: refused while in use, told to update, and registered anew"


def told_to_update(phone):
    """The app repeats, hears that its key is no more, and says so; with that key it asks no more."""
    phone("status", status=(0, 1, 69))
    told = phone.status(status=1)
    expect((told["error_code"], told["advice"], told["sentence"]), (CODE, "update_app", UPDATE), phone.file.stem)
    for words in (("status",), ("repeat",)):
        said = phone(*words, status=1)
        expect((UPDATE in said, "registration:" in said), (True, False), f"{words[0]} of an old build: {said}")


def arrives_behind_update(world, phones, newer, key):
    """The next build has the new key, and registers the same phone."""
    for phone in phones:
        phone("join", world.url, "--bouncer-key", key)
        phone.is_active("the next build")
    expect(world.uses(), {key: 3}, "uses behind the update")
    world.arrives([*phones, newer], "behind the update")


ROWS = [("Our phones of a key that is retired", retired)]
