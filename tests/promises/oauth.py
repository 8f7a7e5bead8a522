"""Promises of agents' credentials: the authorization server, its tokens and its keys."""

from tests.promises.requirement import Requirement

_MODEL = "spec/security.md, 1"
_SERVER = "spec/security.md, 2"
_TOKENS = "spec/security.md, 4"
_KEYS = "spec/security.md, 11"
_THREATS = "spec/security.md, 12"
_FAULTS = "spec/security.md, 13"

PROMISES = {
    "SEC-3": Requirement(
        "A token says who acts; what they may do is read from the database at each call.",
        source="spec/security.md, 0",
    ),
    "SEC-8": Requirement(
        "There is no scope to approve, administer or impersonate, so no token can have one.", _MODEL
    ),
    "SEC-9": Requirement(
        "When a person's rights change, tokens and sessions made before are renewed.", _MODEL
    ),
    "SEC-11": Requirement(
        "An outside application is an agent of the tenant from its first consent on.", _MODEL
    ),
    "SEC-12": Requirement(
        "Tokens come of a code with PKCE, a refresh token, a device or an exchange; no other way.",
        _SERVER,
    ),
    "SEC-13": Requirement(
        "Applications are registered, described by a document of their own or let in as devices; "
        "they register themselves only where the operator allows it.",
        _SERVER,
    ),
    "SEC-14": Requirement(
        "An answer goes to an address the application registered, and nowhere else.", _SERVER
    ),
    "SEC-15": Requirement(
        "A person reads, every time, who asks for what and until when, before anything acts.",
        _SERVER,
    ),
    "SEC-16": Requirement(
        "A device is let in by a code that its person compares and confirms.", _SERVER
    ),
    "SEC-17": Requirement(
        "A token is for one door, and for reading unless more is asked.", _SERVER
    ),
    "SEC-18": Requirement(
        "A code, a device code, a refresh token and a consent count once; a second use ends what "
        "the first one gave and is on record.",
        _SERVER,
    ),
    "SEC-19": Requirement(
        "Grants run in one transaction, off the event loop, on a request read once.", _SERVER
    ),
    "SEC-20": Requirement("No known trap of the OAuth and JOSE libraries is open here.", _SERVER),
    "SEC-24": Requirement("An access token says exactly what the specification lists.", _TOKENS),
    "SEC-25": Requirement(
        "A token is checked whole at each request, and every failure looks the same.", _TOKENS
    ),
    "SEC-26": Requirement(
        "Who lacks a token, or a scope, is told where to get one and which scopes there are.",
        _TOKENS,
    ),
    "SEC-27": Requirement(
        "Refresh tokens change at every use; one that comes back ends its family.", _TOKENS
    ),
    "SEC-28": Requirement(
        "An agent hands another agent of the same user less than it has, and never longer.", _TOKENS
    ),
    "SEC-29": Requirement("Who acts is made at a door and never changes on the way.", _TOKENS),
    "SEC-31": Requirement(
        "What is revoked, disabled or blocked stops at once, and comes back only by new consent.",
        _TOKENS,
    ),
    "SEC-67": Requirement("The official conformance suite of MCP passes.", "spec/security.md, 8"),
    "SEC-81": Requirement(
        "Signing keys are replaced in time without anybody noticing, or at once in an emergency.",
        _KEYS,
    ),
    "SEC-87": Requirement(
        "The operator can make one short token for a live delegation, and it is on record.", _TOKENS
    ),
    "SEC-T42": Requirement("A refresh token that was stolen and used is noticed.", _THREATS),
    "SEC-T43": Requirement("Nothing that looks like a token of ours is taken for one.", _THREATS),
    "SEC-T45": Requirement("A restart or a rotation of keys signs nobody out.", _THREATS),
    "SEC-P10": Requirement("Consent is asked for each client and each address.", _FAULTS),
    "SEC-P17": Requirement("A header that demands what we do not know is refused.", _FAULTS),
    "SEC-P18": Requirement("The size of a token is looked at before what is in it.", _FAULTS),
    "SEC-P19": Requirement("A token without a signature is refused.", _FAULTS),
    "SEC-P20": Requirement("A token does not bring the key it is checked with.", _FAULTS),
    "SEC-P21": Requirement("An algorithm we do not know fails, it is not skipped.", _FAULTS),
    "SEC-P22": Requirement("There is no flow but the one with a code.", _FAULTS),
    "SEC-P23": Requirement("A public key is never taken for a shared secret.", _FAULTS),
    "SEC-P27": Requirement("No parameter turns on a flow that a client does not have.", _FAULTS),
}
