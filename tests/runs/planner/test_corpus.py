"""Eighty sentences over the shipped packs: what the planner makes of them (RUN-108)."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.runs.planner.world import Office, Talk, descriptors, record

CORPUS = Path(__file__).parent.parent / "planner_corpus.jsonl"
TARGET, FIXED = "targetRecordId", "operationType"
COMMANDS_RIGHT, SLOTS_RIGHT = 0.90, 0.85
MONEY = {"currency": "CNY", "total_minor": 36_650}


@dataclass(frozen=True)
class Outcome:
    """What became of a sentence: the command it went for, its input, and what was run."""

    sentence: Mapping[str, Any]
    command: str | None
    slots: Mapping[str, Any]
    ran: tuple[str, ...]

    @property
    def is_right(self) -> bool:
        return bool(self.command == self.sentence["command"])

    @property
    def has_right_slots(self) -> bool:
        return self.is_right and dict(self.slots) == self.sentence["slots"]


def office() -> Office:
    """A house with reports, goods, places and orders."""
    own = ["expense.report.submit", "expense.line.add", "expense.report.discard"]
    suzhou = {"title": "苏州客户拜访 Customer visit, Suzhou", "period": "2026-10"}
    supplies = {"title": "办公用品 Office supplies", "period": "2026-11"}
    dinner = {"title": "团队聚餐 Team dinner", "period": "2026-10"}

    def report(id: str, number: str, state: str, may: list[str], **more: Any) -> dict[str, Any]:
        return record("expense.report", id, number, state, may, **more, **MONEY)

    def thing(kind: str, id: str, label: str, state: str, **more: Any) -> dict[str, Any]:
        return record(f"inventory.{kind}", id, label, state, [], **more)

    return Office(
        records=[
            report("R1", "EXP-2041", "draft", own, **suzhou),
            report("R2", "EXP-2050", "draft", own, **supplies),
            report("R3", "EXP-2030", "approved", ["expense.payment.send"], **dinner),
            report("R4", "EXP-2060", "submitted", ["expense.report.approve"], **dinner),
            report("R5", "EXP-2061", "submitted", ["expense.report.approve"], **dinner),
            thing("item", "J1", "PAPER-A4-80", "active", name="A4 复印纸 Copy paper A4, 80 g"),
            thing("item", "J2", "TONER-BK-26", "active", name="黑色墨粉 Toner, black"),
            thing("item", "J3", "PEN-GEL-05", "active", name="中性笔 Gel pen 0.5 mm"),
            thing("location", "K1", "A-01-01", "open", name="A 区一排一层 Hall A, shelf 1"),
            thing("location", "K2", "A-01-02", "open", name="A 区一排二层 Hall A, shelf 2"),
            thing("location", "K3", "B-02-01", "open", name="B 区二排一层 Hall B, shelf 1"),
            thing("order", "P1", "PO-0003", "ordered", supplier="宁波得力文具 Deli Stationery"),
            thing("order", "P2", "PO-0007", "draft", supplier="惠普耗材 HP Supplies"),
        ],
        answers={"inventory.stock.list": [stock]},
    )


def stock(given: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"outcome": "done", "result": {"stock": [{"id": "S1".rjust(26, "0"), **given}]}}


@cache
def outcomes() -> tuple[Outcome, ...]:
    lines = CORPUS.read_text(encoding="utf-8").splitlines()
    return tuple(outcome(json.loads(line)) for line in lines)


def outcome(sentence: Mapping[str, Any]) -> Outcome:
    house = office()
    talk = Talk(house, descriptors(), locale=sentence["language"])
    talk.tell(sentence["text"])
    called = {id: each["label"] for each in house.records for id in [each["id"]]}
    called["S1".rjust(26, "0")] = "S1"
    ran = list(house.ran)
    if ran and ran[-1][0] != "inventory.stock.list":
        ran = [each for each in ran if each[0] != "inventory.stock.list"]  # it looked up a target
    command, inputs = _went_for(talk, ran)
    return Outcome(sentence, command, _merged(inputs, called), tuple(code for code, _ in ran))


def _went_for(
    talk: Talk, ran: list[tuple[str, dict[str, Any]]]
) -> tuple[str | None, list[dict[str, Any]]]:
    """The command that was run, or that a question was about."""
    if ran:
        return ran[0][0], [given for code, given in ran if code == ran[0][0]]
    if not talk.questions:
        return None, []
    expects = talk.questions[0]["expects"]
    if "code" not in expects:
        return expects["options"][0], []
    named = {name: each["id"] for name, each in expects["references"].items()}
    targets = [{TARGET: each["id"]} for each in expects["targets"]] or [{}]
    return expects["code"], [{**expects["values"], **named, **each} for each in targets]


def _merged(inputs: list[dict[str, Any]], called: Mapping[str, str]) -> dict[str, Any]:
    if not inputs:
        return {}
    slots = {name: called.get(value, value) for name, value in _said(inputs[0])}
    if len(inputs) > 1:
        slots[TARGET] = [called[each[TARGET]] for each in inputs]
    return slots


def _said(given: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    return ((name, value) for name, value in given.items() if name != FIXED)


@pytest.mark.requirement("RUN-108")
def test_the_corpus_is_half_english_half_chinese_and_covers_the_packs() -> None:
    sentences = [each.sentence for each in outcomes()]
    commands = {each["command"] for each in sentences}

    assert len(sentences) == 80
    assert sum(each["language"] == "en" for each in sentences) == 40
    assert len(commands) > 25


@pytest.mark.requirement("RUN-108")
def test_nine_of_ten_sentences_find_their_command() -> None:
    wrong = [(each.sentence["text"], each.command) for each in outcomes() if not each.is_right]

    assert len(wrong) <= len(outcomes()) * (1 - COMMANDS_RIGHT), wrong


@pytest.mark.requirement("RUN-108")
def test_the_values_of_most_sentences_are_all_found() -> None:
    wrong = [
        (each.sentence["text"], each.command, each.slots)
        for each in outcomes()
        if not each.has_right_slots
    ]

    assert len(wrong) <= len(outcomes()) * (1 - SLOTS_RIGHT), wrong


@pytest.mark.requirement("RUN-108")
def test_nothing_that_writes_is_run_by_mistake() -> None:
    reads = {each.code for each in descriptors() if not each.definition.writes}
    wrong = [
        (each.sentence["text"], code)
        for each in outcomes()
        for code in each.ran
        if code not in reads and code != each.sentence["command"]
    ]
    elsewhere = [
        each.sentence["text"]
        for each in outcomes()
        if each.is_right
        and set(each.ran) - reads
        and each.slots.get(TARGET) != each.sentence["slots"].get(TARGET)
    ]

    assert wrong == []
    assert elsewhere == []
