"""What parameters of methods are made of; they tolerate members they do not know."""

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from app.aun.models import ID_LENGTH
from app.kernel import json

LONGEST_PAYLOAD = 1 << 20  # bytes as JSON
DELIVERED, SENT, DUPLICATE, ACCEPTED = "delivered", "sent", "duplicate", "accepted"


class Params(BaseModel):
    """Parameters of a method. Unknown ones are ignored: clients add their own."""

    model_config = ConfigDict(extra="ignore", strict=True)


class Result(BaseModel):
    """What a method answers; a member that is None is left out."""

    model_config = ConfigDict(extra="forbid")


def _small_enough(payload: dict[str, Any]) -> dict[str, Any]:
    if len(json.dumps(payload)) > LONGEST_PAYLOAD:
        raise ValueError("payload is larger than 1 MiB")
    return payload


Payload = Annotated[dict[str, Any], AfterValidator(_small_enough)]
MessageId = Annotated[str, Field(min_length=1, max_length=ID_LENGTH)]
DeviceId = Annotated[str, Field(max_length=ID_LENGTH)]
Seq = Annotated[int, Field(ge=0)]
