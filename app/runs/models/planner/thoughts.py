"""The planner's reasoning, a sentence at a time, in the language of the person."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from app.commands.descriptors import Descriptor
from app.kernel.i18n import gettext as _
from app.runs.models.planner import commands, wording


@dataclass(slots=True)
class Thoughts:
    """The sentences of one turn, in order."""

    sentences: list[str] = field(default_factory=list)

    def understood(self, text: str) -> None:
        """What was heard."""
        self.add(_("I read: %(text)s") % {"text": wording.quoted(" ".join(text.split())[:200])})

    def candidates(self, ranked: Sequence[tuple[Descriptor, float]]) -> None:
        """The commands it could be, with their scores."""
        shown = [f"{commands.name(each)} {score:.2f}" for each, score in ranked if score > 0][:4]
        if shown:
            self.add(_("It could be: %(candidates)s.") % {"candidates": wording.listed(shown)})
        else:
            self.add(_("No command I know fits it."))

    def slots(self, found: Iterable[str], missing: Iterable[str]) -> None:
        """What is known and what is not."""
        if told := list(found):
            self.add(_("Found: %(values)s.") % {"values": wording.listed(told)})
        if lacking := list(missing):
            self.add(_("Missing: %(fields)s.") % {"fields": wording.listed(lacking)})

    def add(self, sentence: str) -> None:
        """One more sentence."""
        self.sentences.append(sentence)
