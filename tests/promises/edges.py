"""Promises about the edges of the process: what comes in, what goes out, what is said of it."""

from tests.promises.requirement import Requirement

_HTTP = "spec/security.md, 6"
_OUT = "spec/security.md, 7"
_THREATS = "spec/security.md, 12"
_FAULTS = "spec/security.md, 13"

PROMISES = {
    "SEC-44": Requirement(
        "Every page, error pages included, carries one strict content security policy.", _HTTP
    ),
    "SEC-45": Requirement(
        "Every answer carries the security headers, and what a credential decides is not stored.",
        _HTTP,
    ),
    "SEC-46": Requirement(
        "The server answers under its own names only, and believes no proxy it was not told of.",
        _HTTP,
    ),
    "SEC-47": Requirement(
        "A body that is too large or too late is refused while it arrives.", _HTTP
    ),
    "SEC-48": Requirement(
        "JSON that two readers could read differently is refused before anything reads it.", _HTTP
    ),
    "SEC-49": Requirement("A request head is whole within 10 s and at most 16 KiB.", _HTTP),
    "SEC-51": Requirement(
        "Each kind of call has a rate; beyond it one is told when to come back.", _HTTP
    ),
    "SEC-53": Requirement("Secrets never reach logs, metrics or error messages.", _HTTP),
    "SEC-55": Requirement(
        "The server calls public https addresses only, and is bounded in time and size.", _OUT
    ),
    "SEC-56": Requirement(
        "Only the operator can exempt a host and port from that, one exact pair each.", _OUT
    ),
    "SEC-57": Requirement(
        "A refused outside call names the rule, and neither an address nor a remote text.", _OUT
    ),
    "SEC-88": Requirement("No label of a metric names a user, tenant, agent or record.", _HTTP),
    "SEC-34": Requirement(
        "A header that decides who is asking stands in a request once, or the request is refused.",
        "spec/security.md, 5",
    ),
    "SEC-T11": Requirement("No page, error pages included, can be framed by another.", _THREATS),
    "SEC-T16": Requirement(
        "No URL, however it is spelled, makes the server call the inside.", _THREATS
    ),
    "SEC-T26": Requirement(
        "A secret that passes through the server is in no log, trace or metric.", _THREATS
    ),
    "SEC-T27": Requirement("A huge body is refused without being kept.", _THREATS),
    "SEC-T28": Requirement("Odd JSON is refused quickly, and nothing of it is stored.", _THREATS),
    "SEC-T30": Requirement("Idle and slow connections do not keep others waiting.", _THREATS),
    "SEC-T37": Requirement("No trick with host or path reaches what it should not.", _THREATS),
    "SEC-P28": Requirement("No host a client names is ever called for it.", _FAULTS),
    "SEC-P31": Requirement("A `Host` header cannot change which path is served.", _FAULTS),
    "SEC-P32": Requirement("A `Range` header made to be slow is answered like any other.", _FAULTS),
    "SEC-P33": Requirement("A multipart body has a limit, announced or not.", _FAULTS),
    "SEC-P34": Requirement("No path leads out of the folder of static files.", _FAULTS),
    "SEC-P36": Requirement("A `Content-Type` made to be slow is answered like any other.", _FAULTS),
    "SEC-P37": Requirement("A form made to be slow to parse is answered like any other.", _FAULTS),
    "SEC-P44": Requirement("One parser decides which address a URL means.", _FAULTS),
}
