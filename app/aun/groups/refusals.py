"""What a group refuses, in the numbers and words clients of AUN look for (aun.md, 11).

A client gives up on a group for good where it reads `retryable: false`, so only what lasts says so.
"""

from app.aun.errors import AunError, GroupInactive, GroupRefused, NotAParty
from app.kernel.i18n import N_


class Suspended(GroupInactive):
    """Owner and administrators alone may do this until the group is resumed."""

    reason = "group_suspended"
    says = N_("The group is suspended: only its owner and administrators can write.")

    def __init__(self) -> None:
        super().__init__("group is suspended", retryable=True)


class Dissolved(GroupInactive):
    """The group is over; it can be read and nothing else."""

    code = -33003
    reason = "group_dissolved"
    says = N_("The group is dissolved.")

    def __init__(self) -> None:
        super().__init__("group is dissolved", retryable=False)


class NameTaken(GroupInactive):
    """Somebody else, an AID or a group, has this name."""

    reason = "group_name_taken"
    says = N_("This name is taken.")

    def __init__(self) -> None:
        super().__init__("group name is taken", retryable=False)


class AlreadyMember(GroupRefused):
    """They are in it already."""

    code = -33004
    reason = "already_member"
    status = 409
    says = N_("They are a member of the group already.")

    def __init__(self) -> None:
        super().__init__("already a member")


class NotAMember(GroupRefused):
    """Only members may."""

    code = -33005
    reason = "not_a_member"
    says = N_("Only members of the group can do this.")

    def __init__(self, text: str = "not a member of this group") -> None:
        super().__init__(text, retryable=False)


class Banned(GroupRefused):
    """A banned member receives, and sends nothing; whoever left banned stays out."""

    reason = "banned"
    says = N_("You are banned in this group.")

    def __init__(self) -> None:
        super().__init__("member is banned", retryable=False)


class Blocked(GroupRefused):
    """A blocked member sends, and receives nothing."""

    reason = "blocked"
    says = N_("Messages of this group are blocked for you.")

    def __init__(self) -> None:
        super().__init__("member is blocked", retryable=False)


class BadCode(GroupRefused):
    """The code is unknown, used up, revoked or over: these look alike."""

    code = -33006
    reason = "bad_invite_code"
    status = 404
    says = N_("This code does not work.")

    def __init__(self) -> None:
        super().__init__("invite code is invalid or expired")


class NotAdmitting(GroupRefused):
    """The group does not take people in this way."""

    reason = "group_not_admitting"
    says = N_("The group does not take new members this way.")


class InviteEnded(GroupRefused):
    """The invitation is no longer pending: accepted, rejected, revoked or expired."""

    code = -33009
    reason = "invite_ended"
    status = 409
    says = N_("The invitation has ended.")

    def __init__(self, status: str) -> None:
        super().__init__(f"invite is not pending: {status}")


class NoInvite(GroupRefused):
    """There is no such invitation, or not for this caller."""

    code = -33009
    reason = "unknown_invite"
    status = 404
    says = N_("There is no such invitation.")

    def __init__(self) -> None:
        super().__init__("invite not found")


class NoRequest(GroupRefused):
    """Nobody of this name asked to join, or it was decided."""

    code = -33009
    reason = "unknown_join_request"
    status = 404
    says = N_("There is no such request to join.")

    def __init__(self) -> None:
        super().__init__("join request not found")


class RoleNeeded(NotAParty):
    """The group's roles do not allow it."""

    reason = "group_role_needed"
    says = N_("Your role in the group does not allow this.")


class OwnerStays(GroupRefused):
    """An owner neither leaves nor is removed; they hand the group on or dissolve it."""

    reason = "owner_stays"
    status = 409
    says = N_("The owner cannot leave the group: hand it to somebody else first, or dissolve it.")

    def __init__(self) -> None:
        super().__init__("owner cannot leave or be removed")


class KeyDiffers(AunError):
    """The group has a key of its own already, and it is another."""

    code = -33002
    reason = "group_aid_already_bound_different_key"
    status = 409
    says = N_("The group has another key already.")

    def __init__(self) -> None:
        super().__init__("group_aid_already_bound_different_key", retryable=False)


class IndexMoved(AunError):
    """Somebody wrote the index of the group's settings meanwhile; the client reads it again."""

    code = -32009
    reason = "group_index_conflict"
    status = 409
    says = N_("Somebody changed the settings meanwhile.")

    def __init__(self) -> None:
        super().__init__("group.index etag conflict", retryable=True)
