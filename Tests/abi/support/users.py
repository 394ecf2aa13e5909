"""What the fixtures `phones` and `sign_in` make: phones, and users who are signed in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .directory_fixtures import Organisation, Person
from .phone import ROUTES, App, Phone


@dataclass
class SignedIn:
    """A signed-in user: one organisation, its contacts cached, at home, online."""

    phone: Phone
    app: App
    person: Person
    org: Organisation
    role: str

    @property
    def home(self) -> str:
        """The route of the role's home."""
        return str(ROUTES[self.role]["home"])

    def start_as(self, person: Person) -> None:
        """Another user's session takes the place of the stored one, without a logout."""
        self.app.session_adopt({"session": self.phone.session(person)})
        self.app.settle()

    def offline(self) -> App:
        """The app, without a network."""
        self.app.go_offline()
        return self.app

    def restart(self, *, online: bool = True) -> App:
        """Close and start the app; the network's record starts empty."""
        self.phone.close()
        self.phone.network.forget()
        self.phone.keychain.calls.clear()
        self.app = self.phone.start(online=online)
        return self.app


def signed_in(
    phones: MakePhone,
    person: Person,
    org: Organisation,
    **options: Any,  # noqa: ANN401
) -> SignedIn:
    """A member of this organisation, among others, at home on a new phone."""
    phone = phones(**options)
    app = phone.start()
    app.sign_in(person, org)
    return SignedIn(phone, app, person, org, "peer_mentor")


#: Creates phones; keyword arguments are those of `Phone`.
MakePhone = Callable[..., Phone]
#: Creates a phone with a signed-in user: `role`, number of `contacts`, options of `Phone`.
MakeUser = Callable[..., SignedIn]
