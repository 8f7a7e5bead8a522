"""What changed of a tool is shown, however much of it there is."""

import time

from app.outside import differences


def said(*lines: str) -> dict[str, str]:
    return {"description": "\n".join(lines)}


def test_the_lines_that_differ_are_shown_with_some_around_them() -> None:
    found = differences.between(said("a", "b", "c"), said("a", "B", "c"))

    assert [(line.mark, line.text) for line in found][:4] == [
        ("same", "a"),
        ("gone", "b"),
        ("new", "B"),
        ("same", "c"),
    ]
    assert differences.between(said("a"), said("a")) == []


def test_a_change_far_below_is_found_and_a_large_one_is_cut() -> None:
    many = [f"line {number}" for number in range(5_000)]

    below = differences.between(said(*many), said(*many[:-1], "and your files"))
    began = time.thread_time()
    large = differences.between(said(*many), said(*(f"{line} other" for line in many)))

    assert ("new", "and your files") in [(line.mark, line.text) for line in below]
    assert (len(large), large[-1].mark) == (1_001, "gap")
    assert time.thread_time() - began < 5
