"""Every tenant is an issuer of its own: a domain, an authority, a gateway that proves itself."""

import ssl
from datetime import UTC, datetime, timedelta

import pytest
from aun_core import _cert_utils
from cryptography import x509
from sqlmodel import select

from app.aun.models import Identity
from app.aun.pki import building, chain, issuers
from app.aun.pki_models import IssuerAuthority, RootAuthority
from app.identity import tenants
from app.identity import users as people
from app.kernel import db
from tests.people import World

BASE = "assent.localhost"


def test_the_first_tenant_has_the_domain_of_the_setting_and_others_a_name_below_it(
    world: World,
) -> None:
    acme = db.read_now(issuers.domain_of, world.acme.id)
    globex = db.read_now(issuers.domain_of, world.globex.id)

    assert (acme, globex) == (BASE, f"globex.{BASE}")
    for name, tenant in {
        BASE: world.acme,
        f"gateway.{BASE}": world.acme,
        f"alice.{BASE}": world.acme,
        f"globex.{BASE}": world.globex,
        f"gateway.globex.{BASE}": world.globex,
        f"gina.globex.{BASE}": world.globex,
    }.items():
        assert issuers.tenant_of(name) == tenant.id, name
    for stranger in ("localhost", "example.com", f"a.b.c.{BASE}", "alice.assent.localhost.evil"):
        assert issuers.tenant_of(stranger) is None, stranger


def test_a_tenant_never_gets_the_name_of_an_aid_nor_an_aid_that_of_a_tenant(world: World) -> None:
    alice = world.user(world.acme["alice"])
    tenant, _ = db.transact_now(tenants.create, slug="alice", name="Alice Ltd")
    gateway, _ = db.transact_now(tenants.create, slug="gateway", name="Gateway Ltd")
    person = db.transact_now(
        people.create, None, world.acme.root, login="globex", display_name="Globex Person"
    )

    assert alice.aid == f"alice.{BASE}"
    assert db.read_now(issuers.domain_of, tenant.id) == f"tenant-alice.{BASE}"
    assert db.read_now(issuers.domain_of, gateway.id) == f"tenant-gateway.{BASE}"
    assert person.aid == f"user-globex.{BASE}"


def test_the_chain_leads_from_an_aid_to_one_root_with_key_identifiers_in_each(
    world: World,
) -> None:
    pem = db.read_now(chain.pem, world.acme.id)
    issuer, root = x509.load_pem_x509_certificates(pem.encode())
    gateway = db.read_now(issuers.gateway, world.acme.id).certificate

    for signed, by in ((gateway, issuer), (issuer, root), (root, root)):
        signed.verify_directly_issued_by(by)
        extensions = signed.extensions
        key = extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
        authority = extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value
        of_signer = by.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
        assert authority.key_identifier == of_signer.digest
        assert key.digest == x509.SubjectKeyIdentifier.from_public_key(signed.public_key()).digest
        assert signed.not_valid_before_utc <= datetime.now(UTC) - timedelta(minutes=4)
    limits = issuer.extensions.get_extension_for_class(x509.BasicConstraints).value
    assert (limits.ca, limits.path_length) == (True, 0)
    assert _cert_utils.cert_common_name(gateway) == f"auth.{BASE}"
    strict = ssl.create_default_context(cadata=pem)
    strict.verify_flags |= ssl.VERIFY_X509_STRICT
    assert strict.cert_store_stats()["x509_ca"] == 2


def test_tenants_share_one_root_and_none_signs_for_another(world: World) -> None:
    roots = db.read_now(lambda session: session.exec(select(RootAuthority)).all())
    made = db.read_now(lambda session: session.exec(select(IssuerAuthority)).all())

    assert len(roots) == 1
    assert {each.root_id for each in made} == {roots[0].id}
    assert len({each.certificate for each in made}) == len(made) == 2
    leaf = db.read_now(issuers.gateway, world.acme.id).certificate
    other = db.read_now(issuers.signer, world.globex.id).certificate
    with pytest.raises(ValueError, match="Issuer"):
        leaf.verify_directly_issued_by(other)


def test_a_tenant_made_while_the_key_of_the_root_is_away_gets_a_root_of_its_own(
    world: World,
) -> None:
    db.transact_now(_let_root_key_go)
    tenant, _ = db.transact_now(tenants.create, slug="late", name="Late")

    old = db.read_now(chain.root_pem, world.acme.id)
    assert db.read_now(chain.root_pem, tenant.id) != old
    assert db.read_now(chain.root_pem, world.globex.id) == old


def test_preparing_again_changes_nothing(world: World) -> None:
    before = db.read_now(lambda session: session.exec(select(IssuerAuthority)).all())
    aids = db.read_now(lambda session: session.exec(select(Identity.aid)).all())

    issuers.prepare()

    assert db.read_now(lambda session: session.exec(select(IssuerAuthority)).all()) == before
    assert db.read_now(lambda session: session.exec(select(Identity.aid)).all()) == aids
    assert building.parsed(before[0].certificate).subject


def _let_root_key_go(work: db.Work) -> None:
    for root in work.session.exec(select(RootAuthority)).all():
        root.key_sealed = None
        work.session.add(root)
