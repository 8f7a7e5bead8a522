"""The platform's own commands: people, roles, agents, commands and keys, for people only.

They call what the pages of administration call, as the person who acts; an agent finds none of them
in its catalogue and may run none, since it must not widen its own user's rights (CMD-25).
"""

from app.commands.definition import Text
from app.commands.pack import Pack
from app.packs.workspace.rights import PERMISSIONS

PACK = Pack(
    code="workspace",
    name=Text(en="Workspace", zh="工作区"),
    permissions=PERMISSIONS,
)
