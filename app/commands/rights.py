"""What packs want permitted and entitled, handed to identity before it declares them."""

from app.commands import registry
from app.identity import permissions, roles


def hand_in() -> None:
    """Tell identity of every pack's permissions, features and grants to roles that ship."""
    for pack in registry.packs():
        permissions.bring(pack.code, pack.permissions, pack.features)
        roles.bring(pack.code, pack.roles)
