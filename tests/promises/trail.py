"""What we promise about the trail, access and events."""

from tests.promises.requirement import Requirement

SECURITY = "spec/security.md"

PROMISES = {
    "SEC-6": Requirement(
        "Permission, data scope and organisation decide together, the same way for lists, single "
        "records and writes; taking a grant away never adds access.",
        source=f"{SECURITY}, 1",
    ),
    "SEC-7": Requirement(
        "An agent holds no rights of its own: it reaches what its user reaches, or less.",
        source=f"{SECURITY}, 1",
    ),
    "SEC-32": Requirement(
        "Rights are read again at every heartbeat of a stream, and at once when they change.",
        source=f"{SECURITY}, 4",
    ),
    "SEC-50": Requirement(
        "A user has a few streams, a slow reader a bounded buffer, and one that stops reading is "
        "closed; nobody else notices.",
        source=f"{SECURITY}, 6",
    ),
    "SEC-74": Requirement(
        "Refused attempts are on record, and repeats are counted, so that nobody can fill the "
        "trail.",
        source=f"{SECURITY}, 10",
    ),
    "SEC-75": Requirement(
        "Every entry of the trail is chained to the one before, without a gap, in the commit of "
        "what it tells.",
        source=f"{SECURITY}, 10",
    ),
    "SEC-76": Requirement(
        "Where the trail stands is signed hourly, every 10,000 entries and at shutdown, durably "
        "and on another disk if you want.",
        source=f"{SECURITY}, 10",
    ),
    "SEC-77": Requirement(
        "What is secret is made unreadable before an entry exists, and can still be compared.",
        source=f"{SECURITY}, 10",
    ),
    "SEC-78": Requirement(
        "Anyone with the database can verify the trail offline, and the first bad entry is named.",
        source=f"{SECURITY}, 10",
    ),
    "CMD-17": Requirement(
        "There is one entry for each fact, with who, for whom, through which door and what "
        "changed.",
        source="spec/commands.md, 7",
    ),
    "CMD-18": Requirement(
        "A done L4 without an approver cannot be written, not even past the application.",
        source="spec/commands.md, 7",
    ),
    "CMD-19": Requirement(
        "Entries are never changed or deleted: the database itself refuses.",
        source="spec/commands.md, 7",
    ),
    "CMD-20": Requirement(
        "A secret field leaves a keyed digest and its length in the trail, nothing else.",
        source="spec/commands.md, 7",
    ),
    "SEC-T12": Requirement(
        "No stream ever carries another user's event, and it closes when its rights end.",
        source=f"{SECURITY}, 12",
    ),
    "SEC-T14": Requirement(
        "An id of another user or tenant looks like one that does not exist.",
        source=f"{SECURITY}, 12",
    ),
    "SEC-T29": Requirement(
        "Clients that never read are closed and cost little memory.",
        source=f"{SECURITY}, 12",
    ),
    "SEC-T30": Requirement(
        "A flood of streams of one user is answered with 429, and the server stays healthy.",
        source=f"{SECURITY}, 12",
    ),
    "SEC-T31": Requirement(
        "Whoever tampers with the trail is found, at the first entry they touched.",
        source=f"{SECURITY}, 12",
    ),
    "SEC-T32": Requirement(
        "A change and its entry are both there or neither is, whatever kills the process.",
        source=f"{SECURITY}, 12",
    ),
}
