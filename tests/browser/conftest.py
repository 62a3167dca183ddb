"""A real browser: Debian's Chromium, driven by Playwright. Where it is missing, tests skip and say how to get it.

With NEEDLEPOINT_BROWSER=required, as in CI, a missing part fails instead.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()


def missing(what: str) -> NoReturn:
    if os.environ.get("NEEDLEPOINT_BROWSER") == "required":
        pytest.fail(what)
    pytest.skip(what)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("playwright is not installed: pip install -e '.[browser]'")
    path = shutil.which("chromium")
    if path is None:
        missing("Chromium is not installed: apt-get install chromium")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def axe() -> str:
    """The source of axe-core, which checks accessibility."""
    path = Path(os.environ.get("NEEDLEPOINT_AXE", "axe.min.js"))
    if not path.is_file():
        missing("axe-core is not here: npm pack axe-core, unpack it, and set NEEDLEPOINT_AXE to its axe.min.js")
    return path.read_text(encoding="utf-8")


@pytest.fixture
def opened(chromium: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Opens a page from a file; at the end it must have said nothing on the console and asked for nothing."""
    told: list[str] = []
    contexts: list[Any] = []

    def open_page(html: str, *, hash: str = "", **options: Any) -> Any:
        file = tmp_path / f"report{len(contexts)}.html"
        file.write_text(html, encoding="utf-8", newline="\n")
        context = chromium.new_context(**{"viewport": {"width": 1400, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("console", lambda message: told.append(f"console {message.type}: {message.text}"))
        page.on("pageerror", lambda error: told.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (told.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("popup", lambda popup: told.append(f"popup: {popup.url}"))
        page.on(
            "request",
            lambda request: None if request.url == file.as_uri() else told.append(f"request: {request.url[:200]}"),
        )
        page.goto(file.as_uri() + hash)
        page.wait_for_selector("html[data-ready]")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert told == []
