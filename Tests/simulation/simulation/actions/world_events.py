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
    """The hosts work for a long time."""
    world.run(chance.choice((5 * MINUTE, 20 * MINUTE, 70 * MINUTE)), chance)


@action(6)
def wait(world: World, process: Process, chance: random.Random) -> None:
    """The host asks without having been woken."""
    process.round()


@action(10)
def flip_network(world: World, process: Process, chance: random.Random) -> None:
    """The network goes or returns; the host may learn of it or not."""
    device = process.device
    device.online = not device.online
    if chance.random() < 0.8:
        for told in device.alive:
            told.ask("network_report", {"online": device.online})


@action(5)
def tell_network(world: World, process: Process, chance: random.Random) -> None:
    """The host reports the state of the network."""
    process.ask("network_report", {"online": process.device.online})


@action(8)
def second_process(world: World, process: Process, chance: random.Random) -> None:
    """An extension or a service opens the same folder."""
    device = process.device
    if len(device.alive) < 2:
        started = device.start()
        if started is not None and chance.random() < 0.7:
            started.ask("session_resume")


@action(10)
def kill(world: World, process: Process, chance: random.Random) -> None:
    """A process is killed, and perhaps a new one starts."""
    process.device.kill(process)
    if chance.random() < 0.7:
        steps.restart(process.device, chance)


@action(4)
def close(world: World, process: Process, chance: random.Random) -> None:
    """A process closes in an orderly way, and perhaps a new one starts."""
    process.device.close(process)
    if chance.random() < 0.7:
        steps.restart(process.device, chance)


# The device ---------------------------------------------------------------------------------------


@action(8)
def sleep(world: World, process: Process, chance: random.Random) -> None:
    """Time passes while no app runs."""
    world.sleep(chance.choice((SECOND, 30 * SECOND, 2 * MINUTE, 10 * MINUTE, HOUR, 5 * HOUR)))


@action(1)
def sleep_long(world: World, process: Process, chance: random.Random) -> None:
    """Days pass while no app runs."""
    world.sleep(chance.choice((13 * HOUR, 3 * DAY, 15 * DAY)))


@action(4)
def set_clock(world: World, process: Process, chance: random.Random) -> None:
    """The user changes the date and time."""
    hours = chance.choice((-48, -5, -1, 1, 5, 48))
    process.device.set_ahead(hours * HOUR if chance.random() < 0.6 else 0)


@action(2)
def reboot(world: World, process: Process, chance: random.Random) -> None:
    """The phone restarts; until its first unlock, the keys cannot be read."""
    device = process.device
    device.reboot()
    device.keychain.unlocked_since_boot = chance.random() < 0.7
    steps.restart(device, chance)


@action(4)
def unlock_device(world: World, process: Process, chance: random.Random) -> None:
    """The user unlocks the device for the first time since its start."""
    process.device.keychain.unlocked_since_boot = True


@action(5)
def key_store_fails(world: World, process: Process, chance: random.Random) -> None:
    """The key store returns an error, once or a few times."""
    call = chance.choice(("load", "load", "save", "erase"))
    name = chance.choice(("device", "biometric"))
    answers = [2, 3, 4, 5, 6, 7, 9]
    # A lost device key is rare: the library then sets the files aside.
    if name == "biometric" or chance.random() < 0.05:
        answers += [1, 8]
    script = [chance.choice(answers)] * chance.choice((1, 1, 2, 4))
    process.device.script(call, name, script)


@action(1)
def enrol_anew(world: World, process: Process, chance: random.Random) -> None:
    """The user adds a fingerprint, or removes the last one."""
    process.device.keychain.change_enrolment()
    process.device.keychain.enrolled = chance.random() < 0.8


# The server ---------------------------------------------------------------------------------------


@action(10)
def weather(world: World, process: Process, chance: random.Random) -> None:
    """Change the probability of network faults."""
    world.roughness = chance.choice((0, 0, 0.1, 0.3, 0.7, 1))


@action(6)
def change_membership(world: World, process: Process, chance: random.Random) -> None:
    """End, restore or change a membership."""
    user, org = chance.choice(list(world.memberships))
    world.access_changes += 1
    role, status = chance.choice(ROLES), chance.choice(("active", "ended"))
    if status == "ended":
        world.end(user, org, role)
    else:
        world.server.control.set_membership(user, org, role=role, status=status)


@action(3)
def change_organisation(world: World, process: Process, chance: random.Random) -> None:
    """Disable or reactivate an organisation."""
    world.access_changes += 1
    world.server.control.set_org(chance.choice(world.orgs), chance.choice(("active", "disabled")))


@action(6)
def administrate(world: World, process: Process, chance: random.Random) -> None:
    """Change a user's sessions at the server."""
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
        # The user signs in elsewhere.
        steps.host_session(world, world.people[user])


@action(4)
def change_settings(world: World, process: Process, chance: random.Random) -> None:
    """Change the project's settings."""
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
    """Add, change or delete contacts."""
    database = world.server.database
    table, rows = TABLES["contacts"], database.rows["contacts"]
    org = chance.choice(world.orgs)
    here = [row for row in rows.values() if row["org_id"] == org]
    what = chance.randrange(4)
    if what == 0 or not here:
        name = f"Kontakt {chance.getrandbits(32):x} Øyås"
        made, _ = database.insert(table, {"org_id": org, "name": name}, SERVICE, None)
        if made is not None and chance.random() < 0.3:
            # The row of a transaction that began earlier and commits only now.
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
        # Deleted without a tombstone: only the reconcile notices.
        del rows[row["id"]]
