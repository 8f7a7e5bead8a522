"""An operator's own authority signs, certificates are renewed in time, the root's key may leave."""

from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from sqlmodel import select

from app.__main__ import main
from app.audit.models import AuditEntry
from app.aun import queries
from app.aun.pki import building, chain, importing, issuers, keys, renewal
from app.aun.pki.building import Signer
from app.aun.pki.importing import Authority
from app.aun.pki.keys import PrivateKey
from app.kernel import db, settings
from app.kernel.errors import Invalid
from tests.clock import Clock
from tests.people import World

BASE = "assent.localhost"
ALICE = f"alice.{BASE}"


def test_a_root_with_its_key_signs_a_new_issuer_and_every_name_keeps_its_key(world: World) -> None:
    root, key = own_root()
    before = leaf(world)

    count = db.transact_now(importing.take, world.acme.id, Authority(root, root_key=key))

    after = leaf(world)
    issuer = db.read_now(issuers.signer, world.acme.id).certificate
    assert count > 5
    assert after.public_key() == before.public_key()
    after.verify_directly_issued_by(issuer)
    issuer.verify_directly_issued_by(root)
    db.read_now(issuers.gateway, world.acme.id).certificate.verify_directly_issued_by(issuer)
    assert db.read_now(chain.pem, world.acme.id).endswith(pem(root))
    entries = db.read_now(lambda session: session.exec(select(AuditEntry.command)).all())
    assert "identity.issuer.import" in entries


def test_an_issuer_of_a_root_whose_key_stays_elsewhere_signs(world: World) -> None:
    root, root_key = own_root()
    issuer = own_issuer(Signer(root, root_key))

    db.transact_now(importing.take, world.acme.id, Authority(root, issuer=issuer))

    leaf(world).verify_directly_issued_by(issuer.certificate)


def test_what_does_not_fit_together_is_refused(world: World) -> None:
    root, key = own_root()
    other, other_key = own_root()
    issuer = own_issuer(Signer(root, key))
    before = db.read_now(chain.pem, world.acme.id)

    for given in (
        Authority(root),
        Authority(root, root_key=other_key),
        Authority(other, issuer=issuer),
        Authority(issuer.certificate, root_key=issuer.key),
        Authority(root, issuer=Signer(issuer.certificate, keys.generate())),
        Authority(building.leaf(Signer(root, key), key.public_key(), "x"), root_key=key),
    ):
        with pytest.raises(Invalid):
            db.transact_now(importing.take, world.acme.id, given)
    assert db.read_now(chain.pem, world.acme.id) == before


def test_the_key_of_the_root_leaves_once(world: World) -> None:
    told = db.transact_now(importing.let_root_key_go, world.acme.id)

    key = load_pem_private_key(told, None)
    root = building.parsed(db.read_now(chain.root, world.acme.id).certificate)
    assert key.public_key() == root.public_key()
    with pytest.raises(Invalid):
        db.transact_now(importing.let_root_key_go, world.acme.id)
    leaf(world)


def test_hosted_certificates_are_renewed_before_they_end(clock: Clock, world: World) -> None:
    before, gateway = leaf(world), db.read_now(issuers.gateway, world.acme.id).certificate
    assert renewal.renew_due() == 0

    clock.move(days=340)
    renewed = renewal.renew_due()

    after = leaf(world)
    assert renewed > 10
    assert after.public_key() == before.public_key()
    assert after.not_valid_after_utc > before.not_valid_after_utc
    assert db.read_now(issuers.gateway, world.acme.id).certificate != gateway
    assert renewal.renew_due() == 0


def test_an_operator_shows_imports_and_takes_the_key_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ASSENT_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.delenv("ASSENT_DATABASE_URL", raising=False)
    settings.current.cache_clear()
    try:
        assert main(["tenant", "add", "acme", "--name", "Acme", "--owner", "olga"]) == 0
        assert main(["aun-ca", "show"]) == 0
        assert "root key here" in capsys.readouterr().out
        root, key = own_root()
        (tmp_path / "root.pem").write_text(pem(root))
        (tmp_path / "key.pem").write_bytes(keys.pem(key))
        files = ["--root", str(tmp_path / "root.pem"), "--root-key", str(tmp_path / "key.pem")]
        assert main(["aun-ca", "import", *files]) == 0
        assert "names were signed anew" in capsys.readouterr().out
        assert main(["aun-ca", "import", "--root", str(tmp_path / "key.pem")]) == 2

        out = tmp_path / "exported.pem"
        assert main(["aun-ca", "export-root-key", str(out)]) == 0
        assert "root key not here" in capsys.readouterr().out
        assert out.read_bytes() == keys.pem(key)
        assert out.stat().st_mode & 0o777 == 0o600
        assert main(["aun-ca", "export-root-key", str(tmp_path / "again.pem")]) == 2
        assert not (tmp_path / "again.pem").exists()
    finally:
        settings.current.cache_clear()


def own_root() -> tuple[x509.Certificate, PrivateKey]:
    key = keys.generate()
    return building.root(key, "Root of the operator"), key


def own_issuer(by: Signer) -> Signer:
    key = keys.generate()
    return Signer(building.issuer(by, key.public_key(), BASE), key)


def leaf(world: World) -> x509.Certificate:
    row = db.read_now(queries.active_certificate, world.acme.id, ALICE)
    assert row is not None
    return building.parsed(row.der)


def pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(Encoding.PEM).decode()
