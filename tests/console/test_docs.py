"""/docs: anybody reads it, under the one policy; whoever is signed in may try it out."""

import re

import pytest

from app.kernel.asgi.headers import CSP
from tests.people import World

MORE = CSP.replace("img-src 'self'", "img-src 'self' data:")


@pytest.mark.requirement("CMD-7", "SEC-44", "SEC-88")
async def test_anybody_reads_it_and_nothing_in_it_is_inline(world: World) -> None:
    async with world.anonymous() as anybody:
        page = await anybody.get("/docs")
        about = await anybody.get("/openapi.json")
        other = await anybody.get("/sign-in")

    assert page.status_code == 200
    assert page.headers["content-security-policy"] == MORE
    assert other.headers["content-security-policy"] == CSP
    assert 'data-description="/openapi.json"' in page.text
    assert '<meta name="csrf" content="">' in page.text
    assert re.findall(r"<style|\son\w+=|\sstyle=|<script(?![^>]* src=)", page.text) == []
    for text in (page.text, about.text):
        assert "acme" not in text.lower()
        assert "expense.payment.send" not in text


@pytest.mark.requirement("CMD-7")
async def test_whoever_is_signed_in_is_told_that_it_is_for_real(world: World) -> None:
    async with world.client(world.acme["alice"]) as browser:
        page = await browser.get("/docs", headers={"Accept-Language": "zh-CN"})

    assert re.search(r'<meta name="csrf" content="[^"]{20,}">', page.text)
    assert world.acme["alice"].display_name in page.text


@pytest.mark.requirement("UI-96")
async def test_its_own_words_are_chinese_for_who_reads_chinese(world: World) -> None:
    async with world.anonymous() as anybody:
        page = await anybody.get("/docs", headers={"Accept-Language": "zh-CN"})

    assert "给程序用的描述" in page.text
