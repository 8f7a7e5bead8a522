"""Lists of what is in a state, where nothing else tells commands apart: "list my drafts"."""

from collections.abc import Sequence

from app.commands.descriptors import Descriptor
from app.runs.models.planner import choosing, kin, language, telling, verbs, wording
from app.runs.models.planner.choosing import Choice
from app.runs.models.planner.commands import Commands
from app.runs.models.planner.language import Sentence
from app.runs.models.planner.moves import LookFirst
from app.runs.models.planner.reading import Purpose, Scene
from app.runs.models.planner.slots import codes, filling, schema
from app.runs.models.planner.slots.said import Said


def by_state(scene: Scene, known: Commands, sentence: Sentence, choice: Choice) -> Choice:
    """Chosen anew where a state is all that is said: the kind that has something in it.

    Raises:
        LookFirst: several kinds could; they are looked at.
    """
    lists = _that_fit(sentence, choice)[: choosing.CHOICES]
    if len(lists) > 1:
        lists = _not_empty(scene, known, lists, sentence.text) or lists[:1]
    if not lists:
        return choice
    if len(lists) == 1:
        return Choice(choice.ranked, chosen=lists[0])
    return Choice(choice.ranked, several=tuple(lists))


def _that_fit(sentence: Sentence, choice: Choice) -> list[Descriptor]:
    """Those that list by a state that is said; of the kind that is said, if one is."""
    said = verbs.classes(language.request(sentence.text))
    asks = "show" in said or sentence.is_question or language.is_own(sentence.text)
    if choice.chosen or not choice.several or said - {"show"} or not asks:
        return []
    if any(codes.codes(Said(sentence.text))):
        return []
    found = [each for each, score in choice.ranked if score and _lists_by(each, sentence.spoken)]
    named = [
        each for each in choosing.rivals(choice) if choosing.is_kind_named(each, sentence.spoken)
    ]
    return [each for each in found if each in named] if named else found


def _lists_by(command: Descriptor, spoken: str) -> bool:
    told = command.definition
    if told.writes or told.targeted:
        return False
    states = [each for each in schema.fields(command) if each.name == "state"]
    return any(kin.is_meant(value, spoken) for each in states for value in each.choices)


def _not_empty(
    scene: Scene, known: Commands, lists: Sequence[Descriptor], text: str
) -> list[Descriptor]:
    """Those that have something of the person's, if it was about their own."""
    calls = [
        known.call(each, filling.fill(each, text, scene.today).values, Purpose.LOOK)
        for each in lists
    ]
    answers = [scene.results(each.tool, each.arguments) for each in calls]
    if missing := [call for call, answer in zip(calls, answers, strict=True) if not answer]:
        raise LookFirst(*missing)
    shown = [wording.rows_of(each[-1].get("result")) or [] for each in answers]
    return [
        each
        for each, rows in zip(lists, shown, strict=True)
        if telling.of_person(scene, rows, text)
    ]
