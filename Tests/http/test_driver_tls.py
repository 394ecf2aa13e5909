"""Which servers the HTTP driver trusts over TLS, and with which versions of the protocol."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import socket
import ssl
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from driver_stand import INVALID, ROOT, Core, Driver

pytestmark = pytest.mark.usefixtures("mode")

# Makes the folder of the first argument the system's certificates for this process, in a mount
# namespace of its own, and fetches each URL with each set of options.
IN_NAMESPACE = """
import ctypes, json, subprocess, sys
from driver_stand import Core, Driver, declare

certificates, library, url, options = sys.argv[1:]
subprocess.run(["mount", "--bind", certificates, "/etc/ssl/certs"], check=True)
built = ctypes.CDLL(library)
declare(built)
built.fake_open.restype = ctypes.c_void_p
built.fake_completion.restype = ctypes.c_char_p
built.holdfast_close.argtypes = [ctypes.c_void_p]
answers = []
for chosen in json.loads(options):
    core = Core(built)
    driver = Driver(core.library, core.handle, **chosen)
    answers.append(core.fetch(url))
    driver.stop()
    core.close()
print(json.dumps(answers))
"""


def certificate_at(folder: Path) -> Path:
    """Make a self-signed certificate for localhost, with its key, in one file."""
    folder.mkdir()
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    files = ["-keyout", folder / "key", "-out", folder / "crt"]
    command = ["openssl", "req", "-x509", *kind, *subject, *files]
    subprocess.run(command, check=True, capture_output=True)
    both = folder / "both.pem"
    both.write_bytes((folder / "key").read_bytes() + (folder / "crt").read_bytes())
    return both


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certificate_at(tmp_path_factory.mktemp("tls") / "server")


@pytest.fixture(scope="session")
def other_certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate that no server of these tests has."""
    return certificate_at(tmp_path_factory.mktemp("tls") / "other")


def serve_tls(certificate: Path, newest: ssl.TLSVersion | None = None) -> int:
    """Start a server that answers [] over TLS on loopback; return its port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    if newest is not None:
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = newest
        context.set_ciphers("ALL:@SECLEVEL=0")
    listener = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        while True:
            link, _ = listener.accept()
            try:
                with context.wrap_socket(link, server_side=True) as secure:
                    secure.recv(65536)
                    secure.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]")
            except OSError:
                pass

    threading.Thread(target=accept, daemon=True).start()
    return int(listener.getsockname()[1])


def fetch(core: Core, port: int, host: str = "localhost", **options: Any) -> dict[str, Any]:
    """Return the answer to one request of a driver with these options."""
    driver = Driver(core.library, core.handle, **options)
    try:
        return core.fetch(f"https://{host}:{port}/")
    finally:
        driver.stop()


def test_untrusted_certificate_is_a_tls_error(core: Core, certificate: Path) -> None:
    assert fetch(core, serve_tls(certificate))["error"] == "tls"


def test_ca_file_adds_a_trusted_certificate(core: Core, certificate: Path) -> None:
    port = serve_tls(certificate)
    assert fetch(core, port, ca_file=str(certificate))["status"] == 200
    # The host name must match as well.
    assert fetch(core, port, "127.0.0.1", ca_file=str(certificate))["error"] == "tls"


def test_ca_options_replace_the_systems_authorities(
    library: Any, certificate: Path, other_certificate: Path, tmp_path: Path
) -> None:
    own_namespace = ["unshare", "--mount", "--map-root-user"]
    tried = subprocess.run([*own_namespace, "true"], capture_output=True, text=True)
    if tried.returncode != 0:
        pytest.skip(f"no mount namespace here: {tried.stderr.strip()}")
    # Given a system that trusts the server's certificate, by file and by folder
    system, empty = tmp_path / "certs", tmp_path / "empty"
    system.mkdir()
    empty.mkdir()
    authority = certificate.with_name("crt").read_bytes()
    (system / "ca-certificates.crt").write_bytes(authority)
    (system / "localhost.pem").write_bytes(authority)
    subprocess.run(["openssl", "rehash", system], check=True, capture_output=True)
    sets = [{}, {"ca_file": str(other_certificate)}, {"ca_path": str(empty)}]
    url = f"https://localhost:{serve_tls(certificate)}/"
    command = [sys.executable, "-c", IN_NAMESPACE, system, library._name, url, json.dumps(sets)]
    paths = [str(Path(__file__).parent), str(ROOT / "Tests" / "server")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(
        [*own_namespace, *map(str, command)], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    by_default, by_file, by_folder = json.loads(done.stdout)
    # Then the driver trusts it by default, and neither with a file nor with a folder of its own
    assert by_default.get("status") == 200
    assert by_file.get("error") == "tls"
    assert by_folder.get("error") == "tls"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the old versions' names
def test_versions_before_1_2_are_refused(core: Core, certificate: Path) -> None:
    port = serve_tls(certificate, newest=ssl.TLSVersion.TLSv1_2)
    assert fetch(core, port, ca_file=str(certificate))["status"] == 200
    port = serve_tls(certificate, newest=ssl.TLSVersion.TLSv1_1)
    assert fetch(core, port, ca_file=str(certificate))["error"] == "tls"


def pin_of(certificate: Path) -> str:
    """The pin of a certificate's public key."""
    command = ["openssl", "x509", "-in", certificate, "-noout", "-pubkey"]
    pem = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    key = base64.b64decode("".join(pem.splitlines()[1:-1]))
    return "sha256//" + base64.b64encode(hashlib.sha256(key).digest()).decode()


def test_pinned_public_key(core: Core, certificate: Path, other_certificate: Path) -> None:
    port = serve_tls(certificate)
    right, wrong = pin_of(certificate), pin_of(other_certificate)
    trusted = {"ca_file": str(certificate)}
    assert fetch(core, port, pinned_public_key=right, **trusted)["status"] == 200
    assert fetch(core, port, pinned_public_key=f"{wrong};{right}", **trusted)["status"] == 200
    assert fetch(core, port, pinned_public_key=wrong, **trusted)["error"] == "tls"
    # A pin does not replace trust.
    assert fetch(core, port, pinned_public_key=right)["error"] == "tls"


@pytest.mark.parametrize(
    "pins",
    ["", "sha256//", "sha256//AAAA", "sha1//AAAA", "key.pem", "sha256//" + 43 * "A" + "=;"],
)
def test_malformed_pins_are_invalid(core: Core, pins: str) -> None:
    assert Driver(core.library, core.handle, pinned_public_key=pins).status == INVALID
