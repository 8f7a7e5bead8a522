"""Names that people set hold nothing that hides, wherever they are set; nor does a message."""

import importlib
import pkgutil
from collections.abc import Iterator

import pytest
from pydantic import BaseModel
from sqlmodel import Session, col, select

from app.aun.models import Message
from app.console import drafts, names, pages
from app.console.forms import Form
from app.identity.models import User
from app.kernel import db
from tests.console import run_stage
from tests.kernel.test_unseen import TRICKS
from tests.people import World

LETTERS_ALONE = {"NewReservation", "NewServer"}  # the slices that own them say which letters
NAMES = {"name", "display_name", "tenant_name", "label", "name_en", "name_zh"}
SAYS = "A name can hold no characters that nobody sees."


def _models() -> Iterator[type[BaseModel]]:
    yield drafts.Draft
    for found in pkgutil.iter_modules(pages.__path__):
        module = importlib.import_module(f"{pages.__name__}.{found.name}")
        for each in vars(module).values():
            is_own = getattr(each, "__module__", "") == module.__name__
            if is_own and isinstance(each, type) and issubclass(each, BaseModel):
                yield each


@pytest.mark.requirement("UI-60")
def test_every_name_of_every_form_is_seen_as_what_it_is() -> None:
    fields = {
        (model, name)
        for model in _models()
        for name in NAMES & model.model_fields.keys()
        if model.__name__ not in LETTERS_ALONE
    }
    wrong = []

    for model, name in sorted(fields, key=str):
        for what, text in TRICKS.items():
            errors = Form(model, {name: [text]}).check().errors
            if not any(error.pointer == name for error in errors):
                wrong.append(f"{model.__module__}.{model.__name__}.{name}: {what}")
        good = Form(model, {name: ["Alice 王 ❤️"]}).check().errors
        wrong += [f"{model}.{name}: refuses all" for each in good if each.says == SAYS]

    assert wrong == []
    assert len(fields) > 12, "else this proves nothing"


@pytest.mark.parametrize("text", TRICKS.values(), ids=TRICKS)
def test_a_trick_is_refused_with_words(text: str) -> None:
    if text:
        with pytest.raises(ValueError, match=SAYS):
            names.plain(text)


@pytest.mark.requirement("UI-60", "UI-26")
async def test_nobody_takes_the_look_of_another_and_nothing_is_no_message(world: World) -> None:
    alice = world.acme["alice"]
    async with world.client(alice) as hers:
        form = {"display_name": "Bob Li\u200b", "time_zone": "UTC"}
        taken = await hers.post("/settings", data=form)
        stage = await run_stage.opened(world, hers)
        said = db.read_now(_count, stage.conversation_id)
        empty = await hers.post(
            f"{stage.path}/messages", data={"text": "\u200b\u2060\u3164", "client_id": "c-9"}
        )

        assert (taken.status_code, empty.status_code) == (422, 422)
        assert SAYS in taken.text
        assert "Fill this in." in empty.text
        assert db.read_now(_count, stage.conversation_id) == said
        assert db.read_now(lambda s: s.get_one(User, (alice.tenant_id, alice.id))).display_name == (
            alice.display_name
        )


def _count(session: Session, conversation_id: str) -> int:
    query = select(col(Message.id)).where(Message.conversation_id == conversation_id)
    return len(session.exec(query).all())
