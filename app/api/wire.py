"""How the API writes its shapes: camelCase on the wire, and nothing that nobody asked for."""

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Wire(BaseModel):
    """A shape of the API; Python keeps its own names."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, from_attributes=True, extra="forbid"
    )
