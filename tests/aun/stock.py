"""Programs nobody here wrote: the stock client, and a server it can find and trust.

The client resolves names under the issuer domain to the server (`tests/interop/aun/shim`), verifies
TLS against a root of the test's own, and lives in an environment of its own, `.venv-aun`.
"""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from app.kernel import clock
from tests.server import RunningServer, free_port
from tests.session import locked

ROOT = Path(__file__).parents[2]
INTEROP = ROOT / "tests" / "interop" / "aun"
CLIENT = ROOT / ".venv-aun"
DOMAIN = "aun.test"
TENANT = "acme"


def python() -> Path:
    """The interpreter of the client's environment, which is made or brought up to date first."""
    wanted = (INTEROP / "requirements.txt").read_text()
    mark = CLIENT / "installed.txt"
    with locked(ROOT / ".venv-aun.lock"):
        if not mark.exists() or mark.read_text() != wanted:
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(CLIENT)], check=True)
            install = [
                "-m",
                "pip",
                "install",
                "--quiet",
                "--no-input",
                "--disable-pip-version-check",
                "-r",
            ]
            pip = [str(CLIENT / "bin" / "python"), *install, str(INTEROP / "requirements.txt")]
            subprocess.run(pip, check=True, capture_output=True)
            mark.write_text(wanted)
    return CLIENT / "bin" / "python"


@dataclass(frozen=True)
class Instance:
    """A server for stock clients: TLS for every name of the domain, open registration."""

    server: RunningServer
    roots: Path
    tls_port: int
    invitation: str  # of its owner, `olga`; of the demo workspace there is none

    def environment(self, home: Path) -> dict[str, str]:
        """What lets any Python program of AUN find and trust the server; `home` keeps its keys."""
        home.mkdir(parents=True, exist_ok=True)
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "AUN_SHIM_ACTIVE": "1",
            "AUN_DOMAIN": DOMAIN,
            "AUN_HOST": "127.0.0.1",
            "AUN_TLS_PORT": str(self.tls_port),
            "AUN_HTTP_PORT": str(self.server.port),
            "AUN_ROOT_CA": str(self.roots),
            "PYTHONPATH": str(INTEROP / "shim"),
            "SSL_CERT_FILE": str(self.roots),
        }

    def run(
        self, home: Path, *arguments: str, timeout: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """Run the client's interpreter with `arguments` to its end."""
        return subprocess.run(
            [python(), *arguments],
            env=self.environment(home),
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )


@contextmanager
def instance(
    folder: Path, database_url: str = "", *, demo: Path | None = None, **env: str
) -> Iterator[Instance]:
    """A running server with a tenant whose AIDs end in `aun.test`.

    With `demo` it has the demo workspace, whose credentials are written to that file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    root, key = _root()
    cert_path, key_path = folder / "tls.pem", folder / "tls.key"
    _write_leaf(root, key, cert_path, key_path)
    tls_port = free_port()
    given = {
        "ASSENT_AUN_ISSUER": DOMAIN,
        "ASSENT_AUN_REGISTRATION": "open",
        "ASSENT_RATE_AUN_AUTH": "6000/minute",
        "ASSENT_TLS_CERT": str(cert_path),
        "ASSENT_TLS_KEY": str(key_path),
        "ASSENT_TLS_PORT": str(tls_port),
        **env,
    }
    arguments = ("--demo", "--credentials", str(demo)) if demo else ()
    server = RunningServer(folder / "data", database_url, env=given, arguments=arguments)
    invitation = "" if demo else _invited(server)
    server.start()
    try:
        roots = folder / "roots.pem"
        roots.write_text(_pem(root) + _root_of(server))
        yield Instance(server, roots, tls_port, invitation.strip())
    finally:
        server.stop()


def _invited(server: RunningServer) -> str:
    """Make the tenant; the address at which its owner comes in."""
    server.command("migrate")
    return server.command("tenant", "add", TENANT, "--name", "Acme", "--owner", "olga")


def _root_of(server: RunningServer) -> str:
    """The root of the server's AIDs."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as asking:
        head = f"GET /root.crt HTTP/1.1\r\nHost: gateway.{DOMAIN}\r\nConnection: close\r\n\r\n"
        asking.sendall(head.encode())
        answer = b"".join(iter(lambda: asking.recv(65_536), b""))
    first, _, body = answer.partition(b"\r\n\r\n")
    assert b" 200 " in first.splitlines()[0], first
    return body.decode()


def _root() -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Test root")])
    made = (
        _builder(name, name, key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(_own_id(key), critical=False)
        .add_extension(_issuer_id(key), critical=False)
        .sign(key, hashes.SHA256())
    )
    return made, key


def _write_leaf(
    root: x509.Certificate, root_key: ec.EllipticCurvePrivateKey, cert: Path, key_path: Path
) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, DOMAIN)])
    names = [x509.DNSName(DOMAIN), x509.DNSName(f"*.{DOMAIN}")]
    made = (
        _builder(name, root.subject, key.public_key())
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(_own_id(key), critical=False)
        .add_extension(_issuer_id(root_key), critical=False)
        .sign(root_key, hashes.SHA256())
    )
    cert.write_text(_pem(made))
    key_path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = clock.now()
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=30))
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _own_id(key: ec.EllipticCurvePrivateKey) -> x509.SubjectKeyIdentifier:
    return x509.SubjectKeyIdentifier.from_public_key(key.public_key())


def _issuer_id(key: ec.EllipticCurvePrivateKey) -> x509.AuthorityKeyIdentifier:
    return x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key())


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()
