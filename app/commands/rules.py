"""Asking a definition's rules: the first that does not hold is the answer."""

from collections.abc import Sequence

from app.commands.context import Context
from app.commands.definition import Rule
from app.commands.errors import Rejected
from app.kernel.errors import FieldError


def check(ctx: Context, rules: Sequence[Rule], reason: str) -> None:
    """Return if every rule holds.

    Raises:
        Rejected: `reason`, with the rule's message, its expression and the fields it is about.
    """
    for rule in rules:
        if not ctx.scope.holds(rule.expr):
            raise Rejected(
                reason,
                *(FieldError(pointer.lstrip("/"), rule.message.en) for pointer in rule.pointers),
                text=rule.message,
                expression=rule.expr,
                pointers=list(rule.pointers),
            )
