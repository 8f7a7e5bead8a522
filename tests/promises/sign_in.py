"""Promises about how people sign in, confirm who they are, and look after their own account."""

from tests.promises.requirement import Requirement

_DECIDES = "spec/security.md, 0"
_MODEL = "spec/security.md, 1"
_PROVIDERS = "spec/security.md, 3"
_PEOPLE = "spec/security.md, 5"
_THREATS = "spec/security.md, 12"
_FAULTS = "spec/security.md, 13"
_PAGES = "spec/console.md, 2"

PROMISES = {
    "SEC-1": Requirement(
        "A browser session is a person, a token is an agent, and a request with both is refused.",
        _DECIDES,
    ),
    "SEC-2": Requirement("What takes a person is refused to every token, and recorded.", _DECIDES),
    "SEC-5": Requirement("No secret that opens something is stored in the clear.", _MODEL),
    "SEC-21": Requirement(
        "Of what a sign-in provider says of itself only eight members count, and none unsafe.",
        _PROVIDERS,
    ),
    "SEC-22": Requirement(
        "A sign-in with a provider ends in the browser it began in, once, with proof made for it.",
        _PROVIDERS,
    ),
    "SEC-23": Requirement(
        "An account elsewhere is who it is, never its mail address; its tokens are dropped.",
        _PROVIDERS,
    ),
    "SEC-34": Requirement("Only a person's own page can act in their session.", _PEOPLE),
    "SEC-35": Requirement("Every form carries a token of its own session or browser.", _PEOPLE),
    "SEC-37": Requirement(
        "A session's secret is ours, rotates, ends on the server, and people end their sessions.",
        _PEOPLE,
    ),
    "SEC-38": Requirement(
        "What is delicate asks again who you are, if you signed in over five minutes ago.", _PEOPLE
    ),
    "SEC-39": Requirement(
        "A passkey answers one challenge of ours, once, and verifies its person.", _PEOPLE
    ),
    "SEC-40": Requirement(
        "A password is long, not common, kept as argon2id, and reset by a link that works once.",
        _PEOPLE,
    ),
    "SEC-41": Requirement(
        "Guessing gets slow for whoever guesses; wrong tenant, login and password look alike.",
        _PEOPLE,
    ),
    "SEC-42": Requirement(
        "The first start prints one link, which makes the first owner, once.", _PEOPLE
    ),
    "SEC-T4": Requirement("Two kinds of credentials in one request read nothing.", _THREATS),
    "SEC-T10": Requirement("A page of another origin or port cannot act for a person.", _THREATS),
    "SEC-T22": Requirement("A session planted before sign-in is never taken over.", _THREATS),
    "SEC-T23": Requirement("No address of ours leads on to another site.", _THREATS),
    "SEC-T24": Requirement(
        "Sign-in with a provider withstands foreign codes, mixed-up issuers and hostile metadata.",
        _THREATS,
    ),
    "SEC-T25": Requirement("No account is taken over by its mail address.", _THREATS),
    "SEC-T35": Requirement("The time of an answer does not tell which logins exist.", _THREATS),
    "SEC-T36": Requirement(
        "Guessing on an account locks nobody out who has a passkey or a session.", _THREATS
    ),
    "SEC-P24": Requirement("The state of a sign-in is tied to its browser.", _FAULTS),
    "SEC-P25": Requirement("A provider's answer counts in the session that asked.", _FAULTS),
    "SEC-P26": Requirement("A provider's metadata cannot set up our HTTP client.", _FAULTS),
    "SEC-P29": Requirement("No cookie of ours travels to or from another site.", _FAULTS),
    "SEC-P30": Requirement("Signing out ends the session on the server.", _FAULTS),
    "UI-25": Requirement("Every form works without script.", _PAGES),
    "UI-31": Requirement("An empty list says what would be here, and what to do.", _PAGES),
    "UI-90": Requirement(
        "Everything works by keyboard, in a sensible order.", "spec/console.md, 6"
    ),
}
