"""A key for what is worked out once for a command: descriptors themselves cannot be one."""

from app.commands.descriptors import Descriptor


class Same:
    """A descriptor that is equal to every other of the same code and content."""

    __slots__ = ("descriptor", "key")

    def __init__(self, descriptor: Descriptor) -> None:
        self.descriptor = descriptor
        self.key = (descriptor.code, descriptor.content_hash)

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.key == other.key
