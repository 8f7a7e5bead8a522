"""What cannot be told as things stand; it is put aside for a person, not tried again."""


class CannotTell(Exception):
    """There is nobody to tell; `reason` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
