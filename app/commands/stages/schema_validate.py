"""Stage `schema_validate`: the input is what the schema says, and nothing else.

From here on stages see typed input only.
"""

from typing import Any

from pydantic import ValidationError

from app.commands import schema_errors
from app.commands.context import Context
from app.commands.errors import Rejected
from app.kernel.errors import FieldError

TARGET = frozenset({"targetRecordId", "operationType"})


def run(ctx: Context) -> None:
    """Check the input, and leave it on the context by its Python names.

    Raises:
        Rejected: `invalid_input`, with every field that does not do.
    """
    machinery, sent = ctx.published.machinery, ctx.call.input
    if not machinery.validator.is_valid(sent):
        raise Rejected("invalid_input", *schema_errors.of(machinery.validator, sent))
    own = {name: value for name, value in sent.items() if name not in TARGET}
    if machinery.input_model is not None:
        ctx.input = _typed(machinery.input_model, own)
        ctx.values = ctx.input.model_dump()
    else:
        known = {machinery.snake[name]: value for name, value in own.items()}
        ctx.input = ctx.values = {**machinery.defaults, **known}


def _typed(model: Any, sent: dict[str, Any]) -> Any:
    try:
        return model.model_validate(sent)
    except ValidationError as fault:
        raise Rejected(
            "invalid_input",
            *(
                FieldError(
                    "/".join(map(str, each["loc"])), str(each["msg"]), {"expected": each["type"]}
                )
                for each in fault.errors(include_url=False, include_input=False)
            ),
        ) from fault
