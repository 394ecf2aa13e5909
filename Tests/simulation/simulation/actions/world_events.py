"""What the host does, and what happens to the device and at the server."""

from __future__ import annotations

import datetime
import random

from memory_supabase.database import SERVICE
from memory_supabase.schema import TABLES

from ..process import Process
from ..world import ROLES, World
from . import steps
from .registry import DAY, HOUR, MINUTE, SECOND, action

# The host -----------------------------------------------------------------------------------------


@action(50)
def run(world: World, process: Process, chance: random.Random) -> None:
    """The hosts work for a while."""
    duration = chance.choice((0, 20, 200, SECOND, 3 * SECOND, 10 * SECOND, 90 * SECOND))
    world.run(duration, chance)


@action(8)
def run_long(world: World, process: Process, chance: random.Random) -> None:
    """The hosts work for long."""
    world.run(chance.choice((5 * MINUTE, 20 * MINUTE, 70 * MINUTE)), chance)


@action(6)
def wait(world: World, process: Process, chance: random.Random) -> None:
    """A worker thread asks whether it is to wait."""
    process.wait_is_over()


@action(10)
def flip_network(world: World, process: Process, chance: random.Random) -> None:
    """The network goes or comes; the host may learn of it or not."""
    device = process.device
    device.online = not device.online
    if chance.random() < 0.8:
        for told in device.alive:
            told.ask("network_set", {"online": device.online})


@action(5)
def tell_network(world: World, process: Process, chance: random.Random) -> None:
    """The host tells what it knows of the network."""
    process.ask("network_set", {"online": process.device.online})


@action(8)
def second_process(world: World, process: Process, chance: random.Random) -> None:
    """An extension, or a service, opens the same folder."""
    device = process.device
    if len(device.alive) < 2:
        started = device.start()
        if started is not None and chance.random() < 0.7:
            started.ask("session_resume")


@action(10)
def kill(world: World, process: Process, chance: random.Random) -> None:
    """A process dies at once, and perhaps a new one is started."""
    process.device.kill(process)
    if chance.random() < 0.7:
        steps.restart(process.device, chance)


@action(4)
def close(world: World, process: Process, chance: random.Random) -> None:
    """A process ends in order, and perhaps a new one is started."""
    process.device.close(process)
    if chance.random() < 0.7:
        steps.restart(process.device, chance)


# The device ---------------------------------------------------------------------------------------


@action(8)
def sleep(world: World, process: Process, chance: random.Random) -> None:
    """Time passes, and no app runs."""
    world.sleep(chance.choice((SECOND, 30 * SECOND, 2 * MINUTE, 10 * MINUTE, HOUR, 5 * HOUR)))


@action(1)
def sleep_long(world: World, process: Process, chance: random.Random) -> None:
    """Days pass."""
    world.sleep(chance.choice((13 * HOUR, 3 * DAY, 15 * DAY)))


@action(4)
def set_clock(world: World, process: Process, chance: random.Random) -> None:
    """Somebody changes the date and time."""
    hours = chance.choice((-48, -5, -1, 1, 5, 48))
    process.device.set_ahead(hours * HOUR if chance.random() < 0.6 else 0)


@action(2)
def reboot(world: World, process: Process, chance: random.Random) -> None:
    """The phone is switched off and on; until it is unlocked, its keys cannot be read."""
    device = process.device
    device.reboot()
    device.keychain.unlocked_since_boot = chance.random() < 0.7
    steps.restart(device, chance)


@action(4)
def unlock_device(world: World, process: Process, chance: random.Random) -> None:
    """The device is unlocked for the first time since it was switched on."""
    process.device.keychain.unlocked_since_boot = True


@action(5)
def key_store_fails(world: World, process: Process, chance: random.Random) -> None:
    """The key store gives one of its answers, once or a few times."""
    call = chance.choice(("load", "load", "save", "erase"))
    name = chance.choice(("device", "biometric"))
    answers = [2, 3, 4, 5, 6, 7, 9]
    # That the key is lost for good is said rarely: the files are set aside then.
    if name == "biometric" or chance.random() < 0.05:
        answers += [1, 8]
    script = [chance.choice(answers)] * chance.choice((1, 1, 2, 4))
    process.device.script(call, name, script)


@action(1)
def enrol_anew(world: World, process: Process, chance: random.Random) -> None:
    """A finger was added, or the last one removed."""
    process.device.keychain.change_enrolment()
    process.device.keychain.enrolled = chance.random() < 0.8


# The server ---------------------------------------------------------------------------------------


@action(10)
def weather(world: World, process: Process, chance: random.Random) -> None:
    """Something goes wrong more often, or less."""
    world.roughness = chance.choice((0, 0, 0.1, 0.3, 0.7, 1))


@action(6)
def change_membership(world: World, process: Process, chance: random.Random) -> None:
    """An organisation lets somebody go, takes them back, or gives them another role."""
    user, org = chance.choice(list(world.memberships))
    world.access_changes += 1
    world.server.control.set_membership(
        user, org, role=chance.choice(ROLES), status=chance.choice(("active", "ended"))
    )


@action(3)
def change_organisation(world: World, process: Process, chance: random.Random) -> None:
    """An organisation is disabled, or opened again."""
    world.access_changes += 1
    world.server.control.set_org(chance.choice(world.orgs), chance.choice(("active", "disabled")))


@action(6)
def administrate(world: World, process: Process, chance: random.Random) -> None:
    """Something happens to somebody's sessions."""
    control, user = world.server.control, chance.choice(list(world.people))
    what = chance.randrange(5)
    if what == 0:
        control.ban(user, chance.choice((600, 86_400)))
    elif what == 1:
        control.unban(user)
    elif what == 2:
        control.revoke_sessions(user)
    elif what == 3:
        control.expire_sessions(user)
    else:
        # A sign-in elsewhere.
        steps.host_session(world, world.people[user])


@action(4)
def change_settings(world: World, process: Process, chance: random.Random) -> None:
    """The project's settings change."""
    world.server.control.set(
        jwt_lifetime=chance.choice((120, 300, 3600)),
        reuse_interval=chance.choice((0, 10)),
        single_session=chance.random() < 0.1,
        rate_limit_burst=chance.choice((None, None, 2)),
        max_rows=chance.choice((1000, 1000, 2)),
        max_body_rows=chance.choice((None, None, 2)),
        date_offset_s=chance.choice((0, 0, 3)),
    )


@action(6)
def change_contacts(world: World, process: Process, chance: random.Random) -> None:
    """Contacts come, change and go."""
    database = world.server.database
    table, rows = TABLES["contacts"], database.rows["contacts"]
    org = chance.choice(world.orgs)
    here = [row for row in rows.values() if row["org_id"] == org]
    what = chance.randrange(4)
    if what == 0 or not here:
        name = f"Kontakt {chance.getrandbits(32):x} Øyås"
        made, _ = database.insert(table, {"org_id": org, "name": name}, SERVICE, None)
        if made is not None and chance.random() < 0.3:
            # Of a transaction that began earlier and commits only now.
            earlier = datetime.timedelta(seconds=chance.choice((1, 8, 50)))
            rows[made["id"]]["updated_at"] = database.now() - earlier
        return
    row = chance.choice(here)
    if what == 1:
        database.update(table, row, {"name": f"Endret {chance.getrandbits(32):x}"}, SERVICE)
    elif what == 2:
        database.update(table, row, {"deleted_at": database.now()}, SERVICE)
    elif not world.ledger.with_id(str(row["id"])) and not any(
        a["contact_id"] == row["id"] for a in database.rows["activities"].values()
    ):
        # Without a tombstone: only the reconcile finds it.
        del rows[row["id"]]
