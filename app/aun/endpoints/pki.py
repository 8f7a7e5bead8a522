"""`/pki/*` and `/root.crt`: what anybody verifies certificates of AUN with."""

import base64
import re
from typing import Annotated

from fastapi import APIRouter, Path, Request
from fastapi.responses import JSONResponse, Response
from sqlmodel import Session

from app.aun import queries
from app.aun.endpoints import hosts
from app.aun.models import AID_LENGTH
from app.aun.pki import certificates, chain, crl, issuers, ocsp
from app.aun.pki_models import Certificate, CertificateState
from app.kernel import clock, db
from app.kernel.errors import NotFound

PEM = "application/x-pem-file"
SERIAL = re.compile(r"[1-9a-f][0-9a-f]{0,39}")
AUTHORITATIVE = "authoritative"
LIFECYCLE = {
    CertificateState.ACTIVE: "active_signing",
    CertificateState.RETIRED: "retired",
    CertificateState.REVOKED: "revoked",
}

router = APIRouter(include_in_schema=False)


@router.get("/pki/chain")
async def whole_chain(request: Request) -> Response:
    """The issuer's certificate, then the root's."""
    return _pem(await db.read(chain.pem, hosts.tenant(request)))


@router.get("/root.crt")
async def root(request: Request) -> Response:
    """The root, for people who set up a client."""
    return _pem(await db.read(chain.root_pem, hosts.tenant(request)))


@router.api_route("/pki/cert/{aid}", methods=["GET", "HEAD"])
async def certificate(
    aid: Annotated[str, Path(max_length=AID_LENGTH)],
    cert_fingerprint: str = "",
    consistency: str = "",
) -> Response:
    """The certificate of an AID, or the one that was asked for; 404 says that the name is free."""
    found = await db.read(_certificate, aid, cert_fingerprint)
    if consistency != AUTHORITATIVE:
        return _pem(certificates.pem(found.der))
    observed = clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    headers = {
        "X-AUN-Cert-Consistency": AUTHORITATIVE,
        "X-AUN-Cert-Lifecycle-State": LIFECYCLE[CertificateState(found.state)],
        "X-AUN-Cert-Fingerprint": f"sha256:{found.fingerprint}",
        "X-AUN-Cert-Observed-At": observed,
    }
    return _pem(certificates.pem(found.der), headers)


@router.get("/pki/crl.json")
async def revoked(request: Request) -> JSONResponse:
    """What is revoked, signed."""
    return JSONResponse({"crl_pem": await db.read(crl.pem, hosts.tenant(request))})


@router.get("/pki/ocsp/{serial}")
async def status(request: Request, serial: str) -> JSONResponse:
    """Whether one certificate still counts, signed for this request."""
    if not SERIAL.fullmatch(serial):
        raise NotFound
    said, der = await db.read(ocsp.answer, hosts.tenant(request), serial)
    return JSONResponse({"status": said, "ocsp_response": base64.b64encode(der).decode()})


def _certificate(session: Session, aid: str, fingerprint: str) -> Certificate:
    tenant_id = issuers.tenant_of(aid)
    found = None
    if tenant_id is not None and fingerprint:
        found = certificates.by_fingerprint(session, tenant_id, aid, fingerprint)
    elif tenant_id is not None:
        found = _current(session, tenant_id, aid)
    if found is None:
        raise NotFound
    return found


def _current(session: Session, tenant_id: str, aid: str) -> Certificate | None:
    """The active one; of a name that was shut out the last, because the name is not free."""
    active = queries.active_certificate(session, tenant_id, aid)
    return active or next(iter(queries.certificates(session, tenant_id, aid)), None)


def _pem(text: str, headers: dict[str, str] | None = None) -> Response:
    return Response(text, headers=headers, media_type=PEM)
