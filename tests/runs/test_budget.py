"""What goes into a request, and how it is made to fit."""

import json

import pytest

from app.runs import budget, compaction
from app.runs.models.protocol import Entry
from app.runs.session import Transcript
from app.runs.states import EntryKind
from tests.runs import bare


def transcript(turns: int) -> list[Entry]:
    """An input, then turns of one call and its long result each."""
    entries = [
        bare.entry(1, EntryKind.SYSTEM, text="who you are"),
        bare.entry(2, EntryKind.INPUT, text="do it", message_id="m"),
    ]
    for turn in range(1, turns + 1):
        call = {"id": f"c{turn}", "provider_id": f"p{turn}", "tool": "look", "arguments": "{}"}
        result = json.dumps({"outcome": "done", "result": "x" * 2_000})
        seq = len(entries) + 1
        entries += [
            bare.entry(seq, EntryKind.RESPONSE, turn, thoughts=[], text="", calls=[call]),
            bare.entry(seq + 1, EntryKind.RESULTS, turn, call_id=f"c{turn}", text=result),
        ]
    return entries


def is_paired(entries: list[Entry]) -> bool:
    """Whether each call is answered right after its response, and no result stands alone."""
    waiting: set[str] = set()
    for each in entries:
        if each.kind == EntryKind.RESULTS:
            if each.body["call_id"] not in waiting:
                return False
            waiting.discard(each.body["call_id"])
        elif waiting:
            return False
        elif each.kind == EntryKind.RESPONSE:
            waiting = {call["id"] for call in each.body["calls"]}
    return not waiting


@pytest.mark.requirement("RUN-79")
def test_chinese_counts_a_token_for_each_character_and_latin_one_for_three_and_a_half() -> None:
    assert budget.tokens_of("报销" * 50) == 101
    assert budget.tokens_of("a" * 350) == 101


@pytest.mark.requirement("RUN-27", "RUN-79", "F-75")
@pytest.mark.parametrize("turn", range(1, 11))
def test_a_summary_leaves_whole_batches_wherever_it_cuts(turn: int) -> None:
    entries = transcript(10)
    until = compaction.cut_before(entries, turn)
    assert until is not None
    entries.append(
        bare.entry(len(entries) + 1, EntryKind.SUMMARY, 10, text="so far", until_seq=until)
    )

    shown = budget.visible(entries)

    assert is_paired(shown)
    assert [each.kind for each in shown[:2]] == [EntryKind.SYSTEM, EntryKind.INPUT]
    assert sum(each.kind == EntryKind.SUMMARY for each in shown) == 1
    assert sum(each.kind == EntryKind.RESPONSE for each in shown) == 10 - turn


@pytest.mark.requirement("RUN-27", "RUN-79")
def test_an_accepted_input_between_folded_turns_stays_word_for_word() -> None:
    entries = transcript(4)
    entries.insert(6, bare.entry(7, EntryKind.INPUT, 2, text="and hurry", message_id="n"))
    entries = [
        Entry(seq=seq, kind=each.kind, body=each.body, turn=each.turn)
        for seq, each in enumerate(entries, 1)
    ]
    until = compaction.cut_before(entries, 3)
    entries.append(
        bare.entry(len(entries) + 1, EntryKind.SUMMARY, 4, text="so far", until_seq=until)
    )

    texts = [each.body.get("text") for each in budget.visible(entries)]

    assert "do it" in texts
    assert "and hurry" in texts


@pytest.mark.requirement("RUN-79")
def test_old_results_are_shortened_to_head_and_tail_and_stay_json() -> None:
    entries = transcript(4)
    entries.append(bare.entry(len(entries) + 1, EntryKind.SUMMARY, 4, shorten_until_turn=2))

    results = [each for each in budget.visible(entries) if each.kind == EntryKind.RESULTS]

    lengths = [len(each.body["text"]) for each in results]
    assert all(length < 1_000 for length in lengths[:2])
    assert all(length > 2_000 for length in lengths[2:])
    assert json.loads(results[0].body["text"])["outcome"] == "done"


@pytest.mark.requirement("RUN-79")
def test_a_measurement_corrects_the_next_estimate() -> None:
    run = bare.session()
    run.transcript = Transcript(transcript(2))
    ask = budget.ask_of(run)
    plain = run.estimated_tokens

    budget.measure(run, ask, bare.measured(input_tokens=plain * 2))

    assert budget.estimate(run, ask) == pytest.approx(plain * 2, rel=0.01)
