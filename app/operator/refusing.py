"""How a command says no: one line for the operator, exit status 2."""

from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import ValidationError
from sqlalchemy.exc import SQLAlchemyError

from app import main
from app.kernel import settings
from app.kernel.errors import AppError, Invalid
from app.kernel.migrations import SchemaTooNew
from app.kernel.problems import words
from app.kernel.sealing import MasterKeyProblem
from app.kernel.settings import Settings


class Refused(Exception):
    """The command cannot be carried out; the message says why and what to do."""


def chosen_settings() -> Settings:
    """The settings of the process.

    Raises:
        Refused: one is malformed or unknown.
    """
    try:
        return settings.current()
    except ValidationError as fault:
        said = "; ".join(_named(error["loc"], str(error["msg"])) for error in fault.errors())
        raise Refused(f"Settings: {said}") from None


@contextmanager
def opened() -> Iterator[Settings]:
    """Keys and database, open inside the block, as the server has them.

    Raises:
        Refused: they cannot be opened, or what is done with them is refused.
    """
    given = chosen_settings()
    try:
        main.start(given)
        yield given
    except Invalid as fault:
        raise Refused(" ".join(words(each.says, each.facts) for each in fault.errors)) from None
    except AppError as fault:
        raise Refused(words(fault.says, fault.facts)) from None
    except (MasterKeyProblem, SchemaTooNew) as fault:
        raise Refused(str(fault)) from None
    except SQLAlchemyError as fault:
        raise Refused(f"The database does not answer: {type(fault).__name__}.") from fault
    finally:
        main.stop()


def _named(where: tuple[int | str, ...], says: str) -> str:
    name = "__".join(str(part) for part in where).upper()
    return f"ASSENT_{name}: {says}" if name else says.removeprefix("Value error, ")
