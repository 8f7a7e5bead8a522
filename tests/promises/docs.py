"""What we promise about the page that describes the HTTP API, and about the written documents."""

from tests.promises.requirement import Requirement

_COMMANDS, _SECURITY = "spec/commands.md, 4", "spec/security.md, 6"

PROMISES = {
    "CMD-7": Requirement(
        "The HTTP API is described whole, and tried out in a browser, under the one policy.",
        source=_COMMANDS,
    ),
    "SEC-44": Requirement(
        "The page that describes the API runs nothing inline; all it has more is `data:` images.",
        source=_SECURITY,
    ),
    "SEC-88": Requirement(
        "What describes the API is for anybody, and names no tenant and no tenant's command.",
        source=_SECURITY,
    ),
}
