"""One turn of the planner: from what was said and done so far to the next calls, or to silence.

The turn is found by going through the request anew each time. Where something has to be read
first, `LookFirst` leads back to the loop, and the next turn comes as far as the answer allows.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jsonschema_rs

from app.commands import schema_errors
from app.commands.descriptors import Descriptor
from app.kernel import i18n
from app.kernel.i18n import gettext as _
from app.runs.models.planner import (
    asking,
    briefing,
    choosing,
    clauses,
    commands,
    focus,
    language,
    listing,
    moves,
    picking,
    reading,
    records,
    resolving,
    telling,
    undoing,
    verbs,
    wishes,
    wording,
)
from app.runs.models.planner.choosing import Choice
from app.runs.models.planner.clauses import Clauses
from app.runs.models.planner.language import Sentence
from app.runs.models.planner.moves import SILENCE, Call, Decided, LookFirst, Move
from app.runs.models.planner.reading import AWAIT, READ, SEARCH, SEND, TASK, Line, Purpose, Scene
from app.runs.models.planner.records import Found
from app.runs.models.planner.slots import codes, dates, filling, schema
from app.runs.models.planner.slots.filling import Filled, Named
from app.runs.models.planner.slots.said import Said
from app.runs.models.planner.slots.schema import Field, Kind
from app.runs.models.planner.thoughts import Thoughts
from app.runs.models.planner.wishes import Wish
from app.runs.models.protocol import Ask

SHOWN = 8  # commands in what it says it can do
PROBED, TYPES = 3, 6  # codes that are looked up to tell commands apart, and in how many types
LOOKS = 12  # turns of reading for one request
SURE = 0.7  # score from which an answer is another request


@dataclass(slots=True)
class Turn:
    """What comes of an ask.

    Attributes:
        upto: the message that is being answered.
    """

    move: Move
    thoughts: list[str]
    upto: int


def plan(ask: Ask) -> Turn:
    """The next turn; the same ask has the same."""
    scene = reading.read(ask)
    line, text = _request(scene)
    tag = language.of(_language_of(scene, text), ask.locale)
    with i18n.speaking(tag):
        planning = _Planning(scene, line, text, tag)
        move = planning.move()
        return Turn(move, planning.thoughts.sentences, line.seq if line else scene.last_seq)


def _request(scene: Scene) -> tuple[Line | None, str]:
    """The oldest message without an answer; one that came meanwhile adds to it, or ends it."""
    if not scene.pending:
        return None, ""
    line = scene.pending[0]
    if len(scene.pending) == 1 or scene.acted or not line.is_principal or line.is_too_long:
        return line, line.text
    later = scene.pending[1]
    if not later.is_principal:
        return line, line.text
    if later.is_too_long:
        return later, later.text  # it may say no
    sentence = language.read(later.text)
    if language.is_no(later.text) or sentence.is_negated:
        return later, later.text
    if scene.question is None and not verbs.classes(sentence.spoken) and not sentence.is_question:
        return later, f"{line.text}\n{later.text}"
    return line, line.text


def _language_of(scene: Scene, text: str) -> str:
    """An answer of one word speaks the language of what it answers."""
    if scene.question is not None and len(text.split()) <= 1 and not language.is_han(text):
        return str(scene.question.get("text", text))
    return text


class _Planning:
    """One turn, while it is found."""

    def __init__(self, scene: Scene, line: Line | None, text: str, tag: str) -> None:
        self.scene, self.line, self.text, self.tag = scene, line, text, tag
        self.known = commands.of(scene)
        self.thoughts = Thoughts()
        self.reads_only = line is not None and not line.is_principal
        self.rest = ""  # what the sentence asks for besides, which waits

    def move(self) -> Move:
        """What comes next."""
        try:
            move = self._next()
        except LookFirst as first:
            move = self._look(first.calls)
        except Decided as decided:
            move = decided.move
        if not self.scene.ask.tools_on:
            return self._spoken(move)
        move = self._with_rest(move)
        if self.line is not None and self.line.note:
            move = self._handed_back(move) if self.line.note == TASK else self._told_only(move)
        return Move([self._anew(call) for call in move.calls], move.text)

    def _with_rest(self, move: Move) -> Move:
        """One thing at a time: what else was asked for is named, and not done."""
        if not self.rest or self.reads_only:
            return move
        text = _(
            "I do one thing at a time, and leave “%(rest)s” for afterwards. Tell me when it is "
            "its turn."
        ) % {"rest": wording.plain(self.rest)[:200]}
        return Move([self._adding(call, text) for call in move.calls], move.text)

    def _adding(self, call: Call, text: str) -> Call:
        if call.purpose not in {Purpose.SAY, Purpose.ASK}:
            return call
        name = "question" if call.tool == AWAIT else "text"
        said = f"{call.arguments[name]}\n\n{text}"
        return Call(call.tool, {**call.arguments, name: said}, call.purpose)

    def _handed_back(self, move: Move) -> Move:
        """What would be said of a task goes to the agent that set it, as the closing text."""
        speaks = any(call.purpose in {Purpose.SAY, Purpose.ASK} for call in move.calls)
        return self._spoken(move) if speaks else move

    def _told_only(self, move: Move) -> Move:
        """What would be asked on a schedule is told: no answer would come back to this run."""
        asked = next((call for call in move.calls if call.purpose is Purpose.ASK), None)
        if asked is None:
            return move
        choices = [f"- {each}" for each in asked.arguments.get("choices", ())]
        head = _("On the schedule “%(text)s” I have done nothing, as I would have to ask first:")
        foot = _("Please tell me again, with that in the sentence, or change the schedule.")
        shown = {"text": wording.plain(" ".join(self.text.split())[:200])}
        question = str(asked.arguments["question"])
        return moves.say("\n".join([head % shown, "", question, *choices, "", foot]))

    def _anew(self, call: Call) -> Call:
        """Words that were said before are said as such: the same twice in a round is sent once."""
        name = "question" if call.tool == AWAIT else "text"
        text = call.arguments.get(name)
        if call.tool not in {SEND, AWAIT} or not text:
            return call
        before = [str(step.arguments.get(name, "")) for step in self.scene.all_steps]
        times = sum(each.endswith(str(text)) for each in before)
        if not times:
            return call
        again = _("Once more: %(text)s") if times == 1 else _("Once more (%(times)s): %(text)s")
        said = again % {"text": text, "times": times}
        return Call(call.tool, {**call.arguments, name: said}, call.purpose)

    def _look(self, calls: list[Call]) -> Move:
        looked = {step.seq for step in self.scene.steps if step.purpose is Purpose.LOOK}
        if len(looked) >= LOOKS:
            return moves.say(_("I looked in many places and did not get on. Nothing was changed."))
        shown = [self._looked_for(call) for call in calls]
        self.thoughts.add(_("I look up first: %(what)s.") % {"what": wording.listed(shown)})
        return Move(calls)

    def _looked_for(self, call: Call) -> str:
        """What a look is about, as people call it."""
        if call.tool not in {READ, SEARCH}:
            code, _given = self.known.called(call.tool, call.arguments)
            command = self.known.known.get(code)
            return commands.name(command) if command is not None else code
        type = str(call.arguments.get("type", ""))
        return str(call.arguments.get("query") or records.name_of(type))

    def _spoken(self, move: Move) -> Move:
        """The last step has no calls: what would be said is the closing text."""
        said = [call for call in move.calls if call.purpose in {Purpose.SAY, Purpose.ASK}]
        if said:
            return Move(text=str(said[0].arguments.get("text") or said[0].arguments["question"]))
        if move.calls:
            return Move(text=_("I have to stop here; that took too many steps."))
        return move

    def _next(self) -> Move:
        line = self.line
        if line is None:
            return SILENCE  # all is answered: not even a thought
        if self._could_not_speak():
            self.thoughts.add(_("My message was refused, so I stop."))
            return SILENCE
        if self.scene.acted:
            self.thoughts.add(_("The calls have answered; I tell what came of them."))
            kept = self.scene.question
            answers = kept if kept is not None and not self._is_elsewhere(kept) else None
            self.rest = self._parts(answers).rest
            return telling.tell(self.scene, self.known, self._asked_text())
        self.thoughts.understood(self.text)
        if line.is_too_long and (line.is_principal or line.sender_kind == "agent"):
            self.thoughts.add(_("That is longer than I read, so I ask for less of it."))
            return moves.say(
                _(
                    "That is more than I can read at once, so I have done nothing. Please tell me "
                    "in a sentence or two what you need."
                )
            )
        if not line.is_principal and line.sender_kind != "agent":
            self.thoughts.add(_("I act only for the person I work for, so I leave this alone."))
            return SILENCE
        if self.scene.question is not None and not self.reads_only:
            return self._answered(self.scene.question)
        return self._afresh(self.text)

    def _could_not_speak(self) -> bool:
        return any(
            step.purpose in {Purpose.SAY, Purpose.ASK} and step.outcome == "refused"
            for step in self.scene.steps
        )

    def _asked_text(self) -> str:
        """The sentence the calls came from, also where an answer completed it."""
        question = self.scene.question
        return f"{question.get('text', '')} {self.text}" if question else self.text

    # a new request

    def _afresh(self, text: str, asked: int = 0) -> Move:
        sentence = language.read(text)
        if not re.sub(r"\W+", "", codes.without(text)) and codes.without(text) != text:
            sentence = language.read(f"show {text}")  # a number alone: what is it?
        if (settled := self._without_command(sentence)) is not None:
            return settled
        if not sentence.is_question and (parts := clauses.of(text)).rest:
            text, self.rest = parts.first, parts.rest
            sentence = language.read(text)
        choice = self._choose(sentence)
        if choice.chosen is not None:
            return self._go(self._wish(choice.chosen, text, asked))
        if choice.several:
            self.thoughts.add(_("More than one command fits, so I ask which."))
            return asking.for_command(text, choice.several, asked)
        if self.reads_only:
            self.thoughts.add(_("Another agent wrote, and there is nothing to look up."))
            return SILENCE
        self.thoughts.add(_("I do not understand this, and say so."))
        return moves.say(self._can_do(_("I did not understand that. I have done nothing.")))

    def _without_command(self, sentence: Sentence) -> Move | None:
        """What needs no command: thanks, greetings, refusals, conditions, undo."""
        if sentence.is_thanks:
            self.thoughts.add(_("That needs no answer."))
            return SILENCE
        if not self.known.known and not self.known.is_large:
            return moves.say(
                _("I may not do anything for you here yet. Please enable me first, then ask again.")
            )
        if sentence.is_greeting:
            return moves.say(self._can_do(_("Hello!")))
        if language.is_no(sentence.text):
            return self._called_off()
        if sentence.is_how_to and not self.reads_only:
            return self._explained(sentence)
        if sentence.is_negated and not sentence.is_question:
            self.thoughts.add(_("I read that as a no."))
            return moves.say(_("All right, you asked me not to, so I do nothing."))
        if sentence.is_undo and not self.reads_only:
            return self._undo()
        said = verbs.classes(sentence.spoken)
        is_later = sentence.is_conditional or (said - {"show"} and dates.repeats(sentence.spoken))
        if is_later and not sentence.is_question and said:
            self.thoughts.add(_("It depends on something that I cannot wait for."))
            return moves.say(
                _(
                    "I can only do things right away, so I have done nothing. Tell me when it "
                    "is time."
                )
            )
        return None

    def _explained(self, sentence: Sentence) -> Move | None:
        """How something is done: by telling me, or in its form."""
        wanted = language.read(language.without_how(sentence.text))
        choice = self._chosen(wanted, False, [])
        command = choice.chosen or next(iter(choice.several), None)
        if command is None:
            return None
        told = command.definition
        described = told.description.in_(self.tag) or told.agent_hint.in_(self.tag)
        self.thoughts.add(_("That asks how it is done; I explain, and change nothing."))
        text = _(
            "%(name)s does that: %(description)s Just tell me to do it, or use the form: "
            "/commands/%(code)s"
        )
        name = wording.quoted(commands.name(command))
        return moves.say(text % {"name": name, "description": described, "code": command.code})

    def _can_do(self, opening: str) -> str:
        names = [commands.name(each) for each in self._some()]
        lines = [f"- {name}" for name in names]
        head = _("This is what I can do for you, among other things:")
        foot = _("Just tell me in a sentence what you need.")
        return "\n".join([opening, "", head, "", *lines, "", foot])

    def _some(self) -> list[Descriptor]:
        """A few commands of each kind of record, in turn, those of every day first."""
        groups: dict[str, list[Descriptor]] = {}
        for each in sorted(self.known.all, key=_by_use):
            groups.setdefault(each.definition.record or each.code, []).append(each)
        turns = [
            group[place]
            for place in range(SHOWN)
            for group in groups.values()
            if place < len(group)
        ]
        return turns[:SHOWN]

    def _choose(self, sentence: Sentence) -> Choice:
        reads_only = self.reads_only or sentence.is_question
        talked = focus.types(self.scene, self.known)[:1]
        choice = self._chosen(sentence, reads_only, talked)
        if self.known.is_large and (not choice.ranked or choice.ranked[0][1] < choosing.CHOSEN):
            self.known.search(sentence.text)
            choice = self._chosen(sentence, reads_only, talked)
        choice = self._by_record(sentence, choice)
        choice = listing.by_state(self.scene, self.known, sentence, choice)
        self.thoughts.candidates(choice.ranked[:4])
        return choice

    def _chosen(self, sentence: Sentence, reads_only: bool, talked: Sequence[str]) -> Choice:
        return choosing.choose(
            sentence, self.known.all, self.tag, reads_only=reads_only, focus=talked
        )

    def _by_record(self, sentence: Sentence, choice: Choice) -> Choice:
        """Where commands are close, the types of the records that are named decide."""
        named = [Named(code) for code, _match in codes.codes(Said(sentence.text))][:PROBED]
        rivals = choosing.rivals(choice) if choice.chosen or choice.several else []
        types = sorted(set().union(*map(choosing.types_of, rivals)) if rivals else ())[:TYPES]
        if not named or len(rivals) < 2 or len(types) < 2:
            return choice
        queries = [records.query_of(type, each) for each in named for type in types]
        records.look(self.scene, *queries)
        hits = [
            {type for type in types if records.by_name(self.scene, [type], each)} for each in named
        ]
        wanted = [each for each in hits if each]
        if wanted:
            return choosing.weighed(choice, wanted)
        choice = choosing.beginning(choice)
        if choice.chosen is None or not choosing.has_place(choice.chosen):
            raise Decided(resolving.nothing_called(named[0].text))
        return choice

    def _wish(self, command: Descriptor, text: str, asked: int = 0) -> Wish:
        return Wish(command, text, filling.fill(command, text, self.scene.today), asked=asked)

    # undo

    def _undo(self) -> Move:
        undo = undoing.last(self.scene, self.known)
        if undo is None:
            return moves.say(_("There is nothing here that I could take back."))
        code, given = undo
        command = self.known.find(code)
        if command is None:
            return moves.say(_("You may not take that back yourself, so I leave it as it is."))
        wish = Wish(command, self.text, Filled(values=dict(given)))
        target, type = given.get(schema.TARGET), command.definition.record
        if isinstance(target, str) and type:
            [found] = records.look(self.scene, {"type": type, "id": target})
            wish.targets = found or [Found(type, target, "", "", {}, None)]
        return self._act(wish)

    # an answer to a question

    def _answered(self, kept: Mapping[str, Any]) -> Move:
        text, kind = self.text, str(kept.get("kind", ""))
        if language.is_no(text) and kind != "fields":
            return self._called_off()
        if self._is_elsewhere(kept):
            self.thoughts.add(_("That is no answer to my question, but another request."))
            return self._afresh(text)
        parts = self._parts(kept)
        self.text, self.rest = parts.first, parts.rest
        if kind == "command":
            return self._picked_command(kept)
        command = self.known.find(str(kept.get("code", "")))
        if command is None:
            return self._afresh(text)
        wish = wishes.of(command, kept)
        options = [Found.of(each, "") for each in kept.get("options") or ()]
        match kind:
            case "record":
                return self._picked_record(wish, options, kept.get("field"))
            case "confirm":
                return self._confirmed(wish, options)
            case "target":
                return self._target_named(wish)
            case "run" if language.is_yes(text):
                return self._act(wish)
            case "run":
                return self._afresh(text)
        return self._fields_given(wish, [str(each) for each in kept.get("missing") or ()])

    def _called_off(self) -> Move:
        self.thoughts.add(_("The person called it off."))
        return moves.say(_("All right, I leave it. Nothing was changed."))

    def _picked_command(self, kept: Mapping[str, Any]) -> Move:
        listed = [str(code) for code in kept.get("options") or ()]
        options = [each for code in listed if (each := self.known.find(code)) is not None]
        place = picking.picked(self.text, [commands.name(each) for each in options])
        if len(options) == 1 and language.is_yes(self.text):
            place = 0
        text = str(kept.get("text", ""))
        if place is not None and len(options) == len(listed):
            return self._go(self._wish(options[place], text, int(kept.get("asked") or 0)))
        asked = 0 if self._is_another_request() else int(kept.get("asked") or 0)
        return self._afresh(self.text, asked)

    def _picked_record(self, wish: Wish, options: Sequence[Found], field: object) -> Move:
        place = picking.picked(self.text, [each.label for each in options])
        if place is None:
            place = picking.picked(self.text, [each.title for each in options])
        if place is None:
            return self._target_named(wish) if not field else self._afresh(self.text, wish.asked)
        if isinstance(field, str) and field:
            wish.references[field] = options[place]
        else:
            wish.targets = [options[place]]
        return self._go(self._refilled(wish))

    def _confirmed(self, wish: Wish, options: Sequence[Found]) -> Move:
        if language.is_yes(self.text) or picking.picked(self.text, [options[0].label]) is not None:
            wish.targets = [options[0]]
            return self._go(self._refilled(wish))
        return self._target_named(wish)

    def _target_named(self, wish: Wish) -> Move:
        if self._is_another_request():
            return self._afresh(self.text)
        said = filling.fill(wish.command, self.text, self.scene.today)
        if not (said.named or said.words or said.month):
            return asking.for_target(wish)
        wish = self._refilled(wish)
        wish.filled.named, wish.filled.words, wish.filled.month = said.named, said.words, said.month
        return self._go(Wish(wish.command, wish.text, wish.filled, asked=wish.asked))

    def _refilled(self, wish: Wish) -> Wish:
        """With what the first sentence said, as the question kept its values only."""
        first = filling.fill(wish.command, wish.text, self.scene.today)
        wish.filled.values = {**first.values, **wish.filled.values}
        wish.filled.named = [each for each in first.named if not wish.command.definition.targeted]
        return wish

    def _fields_given(self, wish: Wish, missing: Sequence[str]) -> Move:
        if language.is_no(self.text) and not self._wants_yes_or_no(wish, missing):
            return self._called_off()
        if not _wants_text(wish.command, missing) and self._is_another_request():
            return self._afresh(self.text)
        said = filling.answer(wish.command, missing, self.text, self.scene.today)
        wish.filled.values |= {k: v for k, v in said.values.items() if k in missing}
        wish.filled.problems = said.problems
        wish.filled.named = said.named
        wish.filled.words = said.words
        wish.filled.said_currency = said.said_currency or wish.filled.said_currency
        return self._go(wish)

    def _wants_yes_or_no(self, wish: Wish, missing: Sequence[str]) -> bool:
        return any(
            each.name in missing and each.kind is Kind.BOOLEAN
            for each in schema.fields(wish.command)
        )

    def _is_another_request(self) -> bool:
        sentence = language.read(self.text)
        return sentence.is_undo or sentence.is_negated or self._other_command() is not None

    def _other_command(self) -> Descriptor | None:
        """What an answer surely asks for by itself."""
        sentence = language.read(clauses.of(self.text).first)
        if not verbs.classes(sentence.spoken) and not sentence.is_question:
            return None
        choice = choosing.choose(
            sentence, self.known.all, self.tag, reads_only=sentence.is_question
        )
        return choice.chosen if choice.chosen and choice.ranked[0][1] >= SURE else None

    def _parts(self, kept: Mapping[str, Any] | None) -> Clauses:
        """What the text is about, and what it asks for besides: a request, or an answer."""
        if kept is None:
            is_question = language.read(self.text).is_question
            return Clauses(self.text) if is_question else clauses.of(self.text)
        command = self.known.known.get(str(kept.get("code", "")))
        if command is None or _wants_text(command, kept.get("missing") or ()):
            return Clauses(self.text)
        parts = clauses.of(self.text, is_answer=True)
        again = verbs.of_code(command.code) in verbs.leading_classes(parts.rest)[0]
        return Clauses(parts.first) if again else parts  # "the second, and submit it"

    def _is_elsewhere(self, kept: Mapping[str, Any]) -> bool:
        """Whether an answer orders something that the question does not offer."""
        if not clauses.is_order(self.text):
            return False
        other, code = self._other_command(), str(kept.get("code", ""))
        about = {code for code, _match in codes.codes(Said(self.text))}
        if other is None:
            said = verbs.classes(language.request(clauses.of(self.text).first))
            return bool(about) and bool(code) and verbs.contradicts(code, said)
        if kept.get("kind") == "command":
            return other.code not in kept.get("options", ())
        if kept.get("kind") != "fields":
            return other.code != code
        labels = {str(each.get("label")) for each in kept.get("targets") or ()}
        if other.code == code:
            return bool(about - labels)
        return bool(about) or language.is_only(self.text, *schema.names_of(other))

    # towards the call

    def _go(self, wish: Wish) -> Move:
        """Records, then values, then the call; a question where one of them is missing."""
        try:
            resolving.resolve(self.scene, self.known, wish)
        except LookFirst:
            self._told_slots(wish, [])
            raise
        missing = self._missing(wish)
        self._told_slots(wish, missing)
        if missing:
            return asking.for_fields(wish, missing)
        if (other := self._other_currency(wish)) is not None:
            return other
        if self._is_unsure(wish):
            self.thoughts.add(_("A part of the sentence fits nothing, so I make sure first."))
            return asking.to_run(wish)
        return self._act(wish)

    def _told_slots(self, wish: Wish, missing: Sequence[Field]) -> None:
        zone = self.scene.ask.timezone
        found = [wording.record(each) for each in wish.targets]
        found += wording.values(wish.command, wish.filled.values, "", zone)
        found += [each.label for each in wish.references.values()]
        self.thoughts.slots(found, [schema.label(wish.command, each.name) for each in missing])

    def _missing(self, wish: Wish) -> list[Field]:
        """What was not said, or does not fit the schema."""
        missing = {each.name for each in wish.filled.missing(wish.command)}
        fields = schema.fields(wish.command)
        missing |= {
            each.name
            for each in fields
            if each.kind is Kind.REFERENCE and each.is_required and each.name not in wish.references
        }
        if not missing:
            missing = self._unfit(wish)
        return [each for each in fields if each.name in missing]

    def _unfit(self, wish: Wish) -> set[str]:
        given = self._inputs(wish)[0]
        validator = jsonschema_rs.validator_for(wish.command.definition.input_schema)
        unfit = set()
        for error in schema_errors.of(validator, given):
            name = error.pointer.strip("/").partition("/")[0]
            wish.filled.problems[name] = _(error.says) % error.facts
            wish.filled.values.pop(name, None)
            unfit.add(name)
        return unfit

    def _is_unsure(self, wish: Wish) -> bool:
        """Words that are in no field and no record, before something that nothing takes back."""
        told = wish.command.definition
        if not told.writes or not told.needs_approval or not wish.targets or not wish.filled.words:
            return False
        words = wish.filled.words
        return not all(records.is_described(each, words, wish.command) for each in wish.targets)

    def _other_currency(self, wish: Wish) -> Move | None:
        """An amount in a currency that the record does not keep is not written into it."""
        said = wish.filled.said_currency
        if said is None or any(each.kind is Kind.CURRENCY for each in schema.fields(wish.command)):
            return None
        for each in wish.targets:
            if each.currency and each.currency != said:
                text = _(
                    "%(record)s is kept in %(kept)s, and you named an amount in %(said)s. "
                    "I have done nothing; please tell me the amount in %(kept)s."
                )
                shown = wording.record(each)
                return moves.say(text % {"record": shown, "kept": each.currency, "said": said})
        return None

    def _inputs(self, wish: Wish) -> list[dict[str, Any]]:
        """The input of each call, in order."""
        named = {name: found.id for name, found in wish.references.items()}
        given = {**wish.filled.values, **named}
        if not wish.command.definition.targeted:
            return [given]
        if not wish.targets:
            return [given]
        return [{**given, schema.TARGET: each.id} for each in wish.targets]

    def _act(self, wish: Wish) -> Move:
        calls = [self.known.call(wish.command, given, Purpose.ACT) for given in self._inputs(wish)]
        if not briefing.is_due(wish.command):
            self.thoughts.add(_("I have everything, so I do it."))
            return Move(calls)
        code = wish.command.definition.undo
        undo = self.known.known.get(code) if code else None
        text = briefing.brief(wish, undo, self.scene.ask.timezone)
        self.thoughts.add(_("I say what will change, then I call it."))
        return Move([Call(SEND, {"text": text, "format": "markdown"}, Purpose.BRIEF), *calls])


def _wants_text(command: Descriptor, missing: Sequence[str]) -> bool:
    """Whether any words would do for one of the fields."""
    fields = schema.fields(command)
    return any(each.name in missing and each.kind in {Kind.TEXT, Kind.SEARCH} for each in fields)


def _by_use(command: Descriptor) -> tuple[int, str]:
    """What writes a little comes before what reads, and that before what is risky."""
    return (2, 0, 1, 3, 4)[command.definition.risk.level], command.code
