"""The colours, read from the style sheet and measured."""

import re

import pytest

from app.console.assets import STATIC

TOKENS = (STATIC / "css/tokens.css").read_text(encoding="utf-8")
PAIR = re.compile(r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)")
COLOURS = {name: (light, dark) for name, light, dark in PAIR.findall(TOKENS)}
SURFACES = ("bg", "surface", "surface-2")

# token → surfaces it stands on, and the lowest contrast spec/console.md §6.1 promises
PROMISED: dict[str, tuple[tuple[str, ...], float]] = {
    "fg": ((*SURFACES, "accent-weak", "danger-weak", "warn-weak", "ok-weak"), 12.0),
    "fg-2": (SURFACES, 6.5),
    "fg-3": (SURFACES, 4.7),
    "border-strong": (SURFACES, 3.1),
    "accent": ((*SURFACES, "accent-weak"), 5.0),
    "accent-fg": (("accent",), 5.0),
    "danger": ((*SURFACES, "danger-weak"), 5.6),
    "danger-fg": (("danger",), 5.6),
    "warn": ((*SURFACES, "warn-weak"), 6.0),
    "ok": ((*SURFACES, "ok-weak"), 5.8),
    "focus": ((*SURFACES, "accent-weak", "danger-weak"), 4.9),
    "r0": (("surface", "r0-weak"), 6.7),
    "r1": (("surface", "r1-weak"), 5.5),
    "r2": (("surface", "r2-weak"), 5.0),
    "r3": (("surface", "r3-weak"), 6.0),
    "r4": (("surface", "r4-weak"), 5.6),
    **{f"tok-{part}": (("surface-2",), 4.9) for part in "ksnme"},
    "tok-c": (("surface-2",), 4.9),
    **{f"c{number}": (("surface",), 4.5) for number in range(1, 7)},
}


def luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in channels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.requirement("UI-84", "UI-101")
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_colour_has_the_contrast_promised_on_every_surface_it_stands_on(theme: str) -> None:
    at = ["light", "dark"].index(theme)
    measured = {
        (token, surface): contrast(COLOURS[token][at], COLOURS[surface][at])
        for token, (surfaces, _) in PROMISED.items()
        for surface in surfaces
    }
    weak = {
        pair: round(value, 2)
        for pair, value in measured.items()
        if value < PROMISED[pair[0]][1] - 0.05  # the table rounds to one place
    }

    assert len(measured) > 60
    assert weak == {}


@pytest.mark.requirement("UI-84")
def test_no_colour_is_written_anywhere_but_among_the_tokens() -> None:
    stray = [
        f"{sheet.name}: {found}"
        for sheet in sorted((STATIC / "css").glob("*.css"))
        if sheet.name != "tokens.css"
        for found in re.findall(
            r"#[0-9a-f]{3,8}\b|rgb\([^)]*\)|hsl\([^)]*\)", sheet.read_text(encoding="utf-8")
        )
    ]

    assert stray == ["utilities.css: #fff"], "paper is white"


@pytest.mark.requirement("UI-84")
def test_every_token_used_is_defined() -> None:
    sheets = [sheet.read_text(encoding="utf-8") for sheet in (STATIC / "css").glob("*.css")]
    used = {name for sheet in sheets for name in re.findall(r"var\(--([\w-]+)", sheet)}
    defined = set(re.findall(r"--([\w-]+):", TOKENS))

    assert used - defined == set()


@pytest.mark.requirement("UI-84")
def test_each_sheet_stands_in_one_of_the_six_layers() -> None:
    layers = {
        sheet.name: re.findall(r"@layer (\w+) \{", sheet.read_text(encoding="utf-8"))
        for sheet in (STATIC / "css").glob("*.css")
    }
    known = {"reset", "tokens", "base", "layout", "components", "utilities"}

    assert {name for names in layers.values() for name in names} == known
    assert [sheet for sheet, names in layers.items() if len(set(names)) != 1] == []


@pytest.mark.requirement("UI-86")
def test_red_is_for_danger_and_failure_alone() -> None:
    reddened = {
        selector.strip()
        for sheet in (STATIC / "css").glob("*.css")
        for selector, body in re.findall(r"([^{}]+)\{([^{}]*)\}", sheet.read_text(encoding="utf-8"))
        if "--danger" in body and sheet.name != "tokens.css"
    }

    assert reddened
    assert [one for one in reddened if not re.search(r"danger|error|invalid", one)] == []
