"""The page in a real browser: no complaint, no request, the keyboard alone, addresses, zoom."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from poolproof_conformance.faulty.registry import FAULTY
from poolproof_conformance.reference_adapter import ReferenceAdapter
from poolproof_conformance.reporting.browser import Browser, opened_browser, what_is_missing
from poolproof_conformance.reporting.counterexamples import counterexamples_of
from poolproof_conformance.reporting.expected import ExpectedList, KnownFailure, judge
from poolproof_conformance.reporting.rows import Cell, Gathered, Kind, Sighting, Variant
from poolproof_conformance.reporting.traced import TracedRun
from poolproof_conformance.reporting.web_page import html_page
from poolproof_conformance.run import run_history
from poolproof_conformance.trace_format import Trace
from poolproof_spec.geometry import layout
from poolproof_spec.operation import Alloc, AnyOperation, Free, Gate, Insert

pytestmark = pytest.mark.skipif(bool(what_is_missing()), reason=what_is_missing() or "a browser is installed")

HOSTILE = "<img src=//example.org/x onerror=document.title='owned'><script>document.title='owned'</script>"
FIRST = (Insert(key=(1,)), Insert(key=(2,)), Insert(key=(3,)), Alloc(name="a", tokens=2), Free(name="a"))
SECOND = (Insert(key=(1, 2)), Alloc(name="a", tokens=2), Gate(open=False), Insert(key=(4,)), Alloc(name="b", tokens=3))


def runs() -> Iterator[tuple[Kind, TracedRun]]:
    geometry = layout("swa2", 320, FULL=32, SWA=32)
    histories: tuple[tuple[str, str, tuple[AnyOperation, ...]], ...] = (
        ("first", "empties-the-cache", FIRST),
        ("second", "falls-back-to-whole-cache", SECOND),
    )
    for name, pool, operations in histories:
        variant = Variant(target=f"wrong pool {name} of a long name that must wrap", mode="eager")
        wrong = next(known.pool_class for known in FAULTY if known.name == pool)
        done = run_history(ReferenceAdapter(wrong), geometry, operations)
        trace = Trace(format=1, name=name, note=HOSTILE, geometry=geometry, operations=operations)
        found = done.violated()
        kind = Kind(
            property=next(iter(found)),
            signature=f"{name} {HOSTILE}",
            message=HOSTILE,
            trace=trace,
            trace_file=f"{name}.json",
            sightings=(Sighting(variant=variant, layout="swa2"),),
        )
        path = Path(kind.trace_file)
        yield kind, TracedRun(path, trace, variant, variant.title, done.steps, done.verdict, done.reason)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = list(runs())
    cells = tuple(
        Cell(variant=run.variant, layout="swa2", histories=9, operations=99, verdict="violated") for _, run in made
    )
    gathered = Gathered(sources=("made",), cells=cells, kinds=tuple(kind for kind, _ in made))
    judgement = judge(
        gathered, ExpectedList(format=1, known=(KnownFailure(property="G1", link="https://example.org/1"),))
    )
    path = tmp_path_factory.mktemp("page") / "report.html"
    examples = counterexamples_of(gathered, [run for _, run in made])
    path.write_text(html_page(gathered, judgement, examples))
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with opened_browser() as opened:
        opened.size(1280, 900)
        opened.open(Path("none"))
        opened.complaints()
        opened.requests()
        yield opened


def address(browser: Browser) -> str:
    return str(browser.ask("return location.hash"))


def heading(browser: Browser) -> str:
    return str(browser.ask("return document.querySelector('article.step:not([hidden]) h2').textContent"))


def test_no_complaint_and_no_request(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.press("n", "j", "k", "?", "?", "n", "o")
    assert browser.complaints() == []
    assert {url.partition("#")[0] for url in browser.requests()} == {page.absolute().as_uri()}
    assert browser.ask("return document.title") == "2 new kinds of failure – poolproof"


def test_stepping_with_the_keyboard_alone(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.press("n")
    assert address(browser) == "#first/3"
    assert heading(browser) == "alloc(name=a, tokens=2)"
    browser.press("j")
    assert (address(browser), heading(browser)) == ("#first/4", "free(name=a)")
    browser.press("j")
    assert address(browser) == "#first/4", "there is no step after the last"
    browser.press("k", "k")
    assert (address(browser), heading(browser)) == ("#first/2", "insert(key=[3])")
    assert browser.ask("return document.activeElement.tagName") == "H2"
    assert browser.ask("return getComputedStyle(document.activeElement).outlineStyle") == "solid"
    assert browser.ask("return document.querySelector('[aria-current]').dataset.step") == "2"
    browser.press("n")
    assert address(browser).startswith("#second/")
    browser.press("p")
    assert address(browser) == "#first/3"
    browser.press("o")
    assert browser.ask("return document.getElementById('overview').checkVisibility()")
    assert not browser.ask("return document.getElementById('viewer').checkVisibility()")


def test_a_key_that_is_held_down_is_not_lost(browser: Browser, page: Path) -> None:
    browser.open(page, "first/0")
    browser.press(*"jjjkjkkj" * 40)  # to the last step, up and down, and one short of the last
    assert heading(browser) == "alloc(name=a, tokens=2)"
    browser.complaints()  # that the browser puts changes of the address off


def test_help_opens_closes_and_holds_the_keys(browser: Browser, page: Path) -> None:
    browser.open(page, "first/3")
    browser.press("?")
    assert browser.ask("return document.getElementById('help').open")
    browser.press("j")
    assert address(browser) == "#first/3"
    browser.press("\ue00c")  # Escape
    assert not browser.ask("return document.getElementById('help').open")
    browser.press("j")
    assert address(browser) == "#first/4"


def test_every_step_has_an_address_and_its_strips(browser: Browser, page: Path) -> None:
    for name, operations in (("first", FIRST), ("second", SECOND)):
        for number in range(len(operations)):
            browser.open(page, f"{name}/{number}")
            steps = browser.ask(
                "return [...document.querySelectorAll('article.step')].filter(e => e.checkVisibility())"
                ".map(e => e.dataset.step)"
            )
            assert steps == [str(number)]
            strips = browser.ask(
                "return [...document.querySelectorAll('article.step:not([hidden]) .strip > svg')]"
                ".map(e => [e.getBoundingClientRect().width, e.querySelectorAll('rect').length])"
            )
            assert len(strips) >= 2
            assert all(width > 400 and boxes >= 5 for width, boxes in strips)


def test_an_address_that_is_not_there_shows_the_overview(browser: Browser, page: Path) -> None:
    for fragment in ("nothing/1", "%E0%A4%A", "overview"):
        browser.open(page, fragment)
        assert browser.ask("return document.getElementById('overview').checkVisibility()")
    browser.open(page, "first/99")
    assert heading(browser) == "free(name=a)"
    assert browser.complaints() == []


CUT_OFF = """
return [...document.querySelectorAll('body *')].filter(e => e.checkVisibility()
  && !e.closest('.scroll, .unseen, .skip, dialog, svg')
  && (e.getBoundingClientRect().right > innerWidth + 1 || e.getBoundingClientRect().left < -1
      || (e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX === 'hidden')))
  .map(e => e.outerHTML.slice(0, 80))
"""


@pytest.mark.parametrize("fragment", ["", "first/3", "second/4"])
def test_nothing_is_cut_off_at_200_percent(browser: Browser, page: Path, fragment: str) -> None:
    browser.size(1280, 900, zoom=2)
    try:
        browser.open(page, fragment)
        wide, room = browser.ask("const e = document.documentElement; return [e.scrollWidth, e.clientWidth]")
        assert wide <= room
        assert browser.ask(CUT_OFF) == []
        assert browser.ask("return devicePixelRatio") == 2
    finally:
        browser.size(1280, 900)


def test_dark_and_light_differ_and_keep_contrast(browser: Browser, page: Path) -> None:
    seen = {}
    for scheme in ("light", "dark"):
        browser.prefer(scheme)
        browser.open(page, "first/3")
        seen[scheme] = browser.ask("const s = getComputedStyle(document.body); return [s.color, s.backgroundColor]")
    browser.prefer("light")
    assert seen["light"][1] != seen["dark"][1]
    for colour, paper in seen.values():
        assert contrast(colour, paper) > 7


def contrast(one: str, other: str) -> float:
    """As WCAG defines it."""

    def luminance(text: str) -> float:
        parts = [int(part) / 255 for part in text[4:-1].split(",")]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)
