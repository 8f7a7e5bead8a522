"""The two fields of a new password, wherever one is chosen."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from app.kernel.errors import FieldError, Invalid
from app.kernel.i18n import N_

TYPED = 1_000  # characters that are read at all


Typed = Annotated[SecretStr, Field(max_length=TYPED)]


class NewPassword(BaseModel):
    """A new password, typed twice."""

    model_config = ConfigDict(extra="forbid")

    password: Typed
    again: Typed

    def chosen(self) -> str:
        """What was typed, both times.

        Raises:
            Invalid: the two differ.
        """
        return same(self.password, self.again)


def same(password: SecretStr, again: SecretStr) -> str:
    """What was typed, both times.

    Raises:
        Invalid: the two differ.
    """
    if password.get_secret_value() != again.get_secret_value():
        raise Invalid(FieldError("again", N_("The two passwords differ.")))
    return password.get_secret_value()
