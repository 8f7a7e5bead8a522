"""Which permissions the platform's own commands ask for; most are those of its pages.

Only owners rotate keys: no role that ships gets that one, and an owner has every permission.
"""

from app.commands import publishing
from app.identity.permissions import Declared

USERS = "identity.user.manage"
ASSIGN = "identity.role.manage"
AGENTS = "identity.agent.manage"
PUBLISH = publishing.MANAGE
ROTATE = "workspace.key.rotate"

PERMISSIONS = (Declared(ROTATE, "workspace", "Rotate keys of the workspace", "轮换工作区密钥"),)
