"""Whoever changes the trail behind the application's back is found, at the first entry touched."""

import random
from pathlib import Path

import pytest

from app.audit import chain, checkpoints, trail, verify
from app.kernel import clock, db
from tests.audit import trails


def test_an_untouched_trail_is_in_order(keys: str, folder: Path) -> None:
    tenant_id = trails.tenant()
    trails.fill(tenant_id, 30)
    checkpoints.make_all(folder)
    trails.fill(tenant_id, 5)

    report = trails.checked(keys, folder)

    assert report.problems == []
    assert (report.entries, report.head_seq, report.checkpoints) == (35, 35, 1)


def test_times_and_switches_survive_both_databases(keys: str, folder: Path) -> None:
    tenant_id = trails.tenant()
    full = trails.entry(
        tenant_id,
        approved_at=clock.now(),
        approved_by="U2",
        reversible=False,
        idempotent=True,
        turn=3,
        timings={"load_us": 12},
    )
    db.transact_now(trail.append, full)

    assert trails.checked(keys, folder).problems == []


@pytest.mark.requirement("SEC-T31", "SEC-78")
@pytest.mark.parametrize(
    ("statement", "first_bad"),
    [
        ("UPDATE audit_entry SET outcome = 'refused' WHERE seq = 7", 7),
        ("UPDATE audit_entry SET user_id = NULL WHERE seq = 7", 7),
        ("UPDATE audit_entry SET changes = '[]' WHERE seq = 7", 7),
        ("UPDATE audit_entry SET input_redacted = '{\"amount_minor\": 1}' WHERE seq = 7", 7),
        ("UPDATE audit_entry SET at = '2001-01-01 00:00:00.000000' WHERE seq = 7", 7),
        ("UPDATE audit_entry SET hash = prev_hash WHERE seq = 7", 7),
        ("UPDATE audit_entry SET prev_hash = hash WHERE seq = 7", 7),
        ("DELETE FROM audit_entry WHERE seq = 7", 7),
        ("DELETE FROM audit_entry WHERE seq = 1", 1),
        ("DELETE FROM audit_entry WHERE seq > 17", 18),  # the head still names it
        ("UPDATE audit_entry SET seq = 99 WHERE seq = 7", 7),
        ("UPDATE audit_head SET hash = 'ff'", 20),
        ("UPDATE audit_head SET seq = 12", 13),
        ("UPDATE audit_head SET seq = 25", 21),
        ("DELETE FROM audit_head", 20),
    ],
)
def test_a_change_is_named_by_its_first_entry(
    keys: str, folder: Path, statement: str, first_bad: int
) -> None:
    trails.fill(trails.tenant(), 20)

    trails.unlocked(keys, statement)

    assert trails.checked(keys, folder).first_bad_seq == first_bad


@pytest.mark.requirement("SEC-T31")
def test_entries_that_change_places_are_found(keys: str, folder: Path) -> None:
    trails.fill(trails.tenant(), 20)

    trails.unlocked(
        keys,
        "UPDATE audit_entry SET seq = 900 WHERE seq = 8",
        "UPDATE audit_entry SET seq = 8 WHERE seq = 9",
        "UPDATE audit_entry SET seq = 9 WHERE seq = 900",
    )

    assert trails.checked(keys, folder).first_bad_seq == 8


@pytest.mark.requirement("SEC-T31")
def test_an_entry_put_in_is_found(keys: str, folder: Path) -> None:
    tenant_id = trails.tenant()
    trails.fill(tenant_id, 20)
    columns = ", ".join(name for name in chain.COLUMNS if name != "seq")

    trails.unlocked(
        keys,
        f"INSERT INTO audit_entry (seq, {columns}) "  # noqa: S608 - names of our columns
        f"SELECT 21, {columns} FROM audit_entry WHERE seq = 3",
        "UPDATE audit_head SET seq = 21",
    )

    assert trails.checked(keys, folder).first_bad_seq == 21


@pytest.mark.requirement("SEC-T31", "SEC-76")
def test_a_tail_cut_together_with_the_head_is_found_by_the_checkpoint(
    keys: str, folder: Path
) -> None:
    tenant_id = trails.tenant()
    trails.fill(tenant_id, 20)
    checkpoints.make_all(folder)

    trails.unlocked(
        keys,
        "UPDATE audit_head SET seq = 12, hash = (SELECT hash FROM audit_entry WHERE seq = 12)",
        "DELETE FROM audit_entry WHERE seq > 12",
    )

    assert trails.checked(keys, folder).first_bad_seq == 13
    assert checkpoints.make_all(folder) == 0  # nothing is signed over it


@pytest.mark.requirement("SEC-T31", "SEC-76")
def test_a_chain_written_anew_is_found_by_the_checkpoint(keys: str, folder: Path) -> None:
    tenant_id = trails.tenant()
    trails.fill(tenant_id, 10)
    checkpoints.make_all(folder)

    trails.unlocked(keys, "DELETE FROM audit_entry", "DELETE FROM audit_head")
    trails.fill(tenant_id, 12)

    report = trails.checked(keys, folder)
    assert report.first_bad_seq == 10
    assert "checkpoint" in report.problems[0].text


@pytest.mark.requirement("SEC-T31", "SEC-76")
def test_checkpoints_of_a_tenant_the_database_does_not_know_are_told(
    keys: str, folder: Path
) -> None:
    trails.fill(trails.tenant(), 3)
    checkpoints.make_all(folder)
    (path,) = folder.iterdir()
    path.rename(folder / "01JZZZZZZZZZZZZZZZZZZZZZZZ.jsonl")

    report = verify.verify(keys, folder)

    assert not report.is_ok
    assert any("not in this database" in line for line in report.lines())


@pytest.mark.requirement("SEC-76")
@pytest.mark.parametrize("damage", ["drop", "swap", "flip", "foreign"])
def test_a_checkpoint_file_that_was_touched_is_found(keys: str, folder: Path, damage: str) -> None:
    tenant_id = trails.tenant()
    for _ in range(4):
        trails.fill(tenant_id, 3)
        checkpoints.make_all(folder)
    path = checkpoints.file_of(folder, tenant_id)
    lines = path.read_bytes().splitlines()
    if damage == "drop":
        del lines[1]
    elif damage == "swap":
        lines[1], lines[2] = lines[2], lines[1]
    elif damage == "flip":
        head, payload, signature = lines[1].split(b".")
        lines[1] = b".".join([head, payload, signature[:-4] + b"AAAA"])
    else:
        lines[1] = b"not.a.jws"
    path.write_bytes(b"\n".join(lines) + b"\n")

    problems = trails.checked(keys, folder).problems

    assert [problem.facts["line"] for problem in problems] == [2]


@pytest.mark.requirement("SEC-78")
def test_a_thousand_random_mutations_are_all_found(keys: str, folder: Path) -> None:
    """In one pass: each entry of a chain is changed in memory, as the verifier would read it."""
    tenant_id = trails.tenant()
    trails.fill(tenant_id, 50)
    engine = db.engine_for(keys, read_only=True)
    with engine.connect() as connection:
        rows = list(verify._rows(connection, tenant_id, 0))
    engine.dispose()
    chosen = random.Random(7)  # noqa: S311 - a seed, not a secret

    missed = 0
    for _ in range(1_000):
        seq, prev_hash, stored, values = chosen.choice(rows)
        assert values is not None
        name = chosen.choice([name for name in chain.HASHED if name != "seq"])
        changed = {**values, name: _other(values[name], chosen)}
        fault = verify._fault(seq, prev_hash, seq, prev_hash, stored, changed, {})
        missed += fault is None

    assert missed == 0


@pytest.mark.requirement("SEC-78")
def test_the_verifier_starts_from_an_entry_known_to_be_good(keys: str, folder: Path) -> None:
    trails.fill(trails.tenant(), 20)
    trails.unlocked(keys, "UPDATE audit_entry SET outcome = 'refused' WHERE seq = 7")

    assert trails.checked(keys, folder, since=9).problems == []
    assert trails.checked(keys, folder, since=9).entries == 12
    assert trails.checked(keys, folder, since=99).first_bad_seq == 99


@pytest.mark.requirement("SEC-78")
def test_a_slice_holds_its_rows_against_its_entries(
    keys: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify, "_cross_checks", {})
    trails.fill(trails.tenant(), 3)

    verify.register_cross_check(
        "reports", lambda session, tenant_id: [verify.Problem(2, "No row.")]
    )

    assert trails.checked(keys, folder).first_bad_seq == 2


@pytest.mark.requirement("SEC-78")
def test_one_tenant_is_chosen_by_its_short_name(keys: str, folder: Path) -> None:
    trails.fill(trails.tenant("acme"), 2)
    trails.fill(trails.tenant("other"), 3)

    assert trails.checked(keys, folder, tenant="other").entries == 3
    with pytest.raises(LookupError):
        verify.verify(keys, folder, tenant="nobody")


@pytest.mark.requirement("SEC-78")
def test_a_long_chain_is_read_in_batches(
    keys: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify, "BATCH", 7)
    trails.fill(trails.tenant(), 50)

    assert trails.checked(keys, folder).entries == 50


def _other(value: object, chosen: random.Random) -> object:
    match value:
        case None:
            return chosen.choice(["", 0, False, [], {}])
        case bool():
            return not value
        case int():
            return value + 1
        case str():
            return value[:-1] + ("0" if value[-1:] != "0" else "1")
        case list():
            return [*value, None]
        case dict():
            return {**value, "more": None}
    raise AssertionError(value)
