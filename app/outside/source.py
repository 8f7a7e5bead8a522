"""Outside tools as a source of commands (`app/commands/sources.py`)."""

from app.commands.sources import Source
from app.outside import definitions, names, performing

SOURCE = Source(
    prefix=names.PREFIX,
    definitions=definitions.of_tenant,
    perform=performing.perform,
)
