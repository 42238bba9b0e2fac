"""A consumer that shares no code passes every vector, and no digit can be changed unseen; needs a C++17 compiler."""

import json
import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from poolproof_conformance.vectors.checksum import checksum
from poolproof_conformance.vectors.vector_errors import VectorError
from poolproof_conformance.vectors.vector_files import NAMES, read_vectors
from poolproof_conformance.vectors.verify import differences

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "vectors"
SOURCES = ROOT / "examples" / "vector_consumer_cpp"
FLIPS_A_CLASS = 2
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|-?\d+|true|false|null')
ANSWERS = {
    "numberOfTests",
    "testGroups.tests.tcId",
    "testGroups.tests.pages.full_pages",
    "testGroups.tests.pages.swa_pages",
    "testGroups.tests.pages.state_pages",
    "testGroups.tests.windows",
    "testGroups.tests.needed_end",
    "testGroups.tests.steps.key",
    "testGroups.tests.evicted_pages",
    "testGroups.tests.reason.needed",
    "testGroups.tests.reason.available",
}
"""Fields that a case is judged by: a consumer sees a changed one without the checksum too."""


@pytest.fixture(scope="module")
def consumer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example, compiled."""
    compiler = shutil.which("g++") or shutil.which("c++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler on this machine")
    program = tmp_path_factory.mktemp("consumer") / "consumer"
    flags = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([compiler, *flags, "-o", program, SOURCES / "consumer.cpp"], check=True)
    return program


def answer(program: Path, *arguments: object) -> tuple[int, str]:
    """(exit status, what it says)."""
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


class Digits(NamedTuple):
    """One number, or text with digits in it, of a file."""

    start: int
    end: int
    field: str
    """Names from the top to it, without indices."""


def digits_of(text: str) -> Iterator[Digits]:
    """Every name and value that has a digit, where it stands: the tokens of the text beside those of the document."""
    fields = list(_fields(json.loads(text), ""))
    tokens = list(TOKEN.finditer(text))
    assert len(fields) == len(tokens)
    for token, field in zip(tokens, fields, strict=True):
        if re.search(r"\d", token[0]):
            yield Digits(token.start(), token.end(), field)


def _fields(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            below = f"{path}.{name}".lstrip(".")
            yield f"name in {path}"
            yield from _fields(inner, below if path != "notes" else "notes.flag")
    elif isinstance(value, list):
        for inner in value:
            yield from _fields(inner, path)
    else:
        yield path


@cache
def small(name: str) -> str:
    """A file of fewer groups that has every field that the whole file has: a digit is flipped many times."""
    document, seen, kept = json.loads((FOLDER / f"{name}.json").read_text()), set(), []
    for group in document["testGroups"]:
        fields = set(_fields(group, ""))
        if not fields <= seen:
            seen |= fields
            kept.append(group)
    document["testGroups"] = kept
    cases = [case for group in kept for case in group["tests"]]
    for number, case in enumerate(cases, start=1):
        case["tcId"] = number
    flags = {flag for case in cases for flag in case["flags"]}
    document["notes"] = {flag: note for flag, note in document["notes"].items() if flag in flags}
    document["numberOfTests"], document["checksum"] = len(cases), 0
    document["checksum"] = checksum(document)
    return json.dumps(document)


def sampled(text: str, seed: int) -> list[Digits]:
    """A few of each field."""
    rng, by_field = Random(seed), defaultdict(list)
    for digits in digits_of(text):
        by_field[digits.field].append(digits)
    return [one for found in by_field.values() for one in rng.sample(found, min(FLIPS_A_CLASS, len(found)))]


def flipped(text: str, digits: Digits, rng: Random) -> str:
    """The text with one digit of it another one; a number keeps its length and its sign."""
    places = [at for at in range(digits.start, digits.end) if text[at].isdigit()]
    at = rng.choice(places)
    leads = at == places[0] and len(places) > 1 and text[digits.start] != '"'
    others = [digit for digit in "0123456789" if digit != text[at] and not (leads and digit == "0")]
    return text[:at] + rng.choice(others) + text[at + 1 :]


def test_the_consumer_passes_every_vector(consumer: Path) -> None:
    status, said = answer(consumer, *(FOLDER / f"{name}.json" for name in NAMES))
    assert status == 0, said
    counts = {name: read_vectors(FOLDER / f"{name}.json").numberOfTests for name in NAMES}
    assert [line.rpartition("/")[2] for line in said.splitlines()] == [
        f"{name}.json: {count} cases, 0 differ" for name, count in counts.items()
    ]


def test_the_consumer_shares_no_code() -> None:
    included = re.findall(r'#include "(.*)"', "".join(path.read_text() for path in SOURCES.glob("*.[ch]pp")))
    assert {path.name for path in SOURCES.iterdir()} >= set(included)
    assert set(included) == {"json.hpp", "model.hpp"}


@pytest.mark.parametrize("name", NAMES)
def test_a_flipped_digit_of_any_field_fails(name: str, consumer: Path, tmp_path: Path) -> None:
    text, path, rng = small(name), tmp_path / f"{name}.json", Random(1)
    path.write_text(text)
    assert answer(consumer, path)[0] == 0
    flips = sampled(text, 1)
    assert len({digits.field for digits in flips}) > 10
    for digits in flips:
        path.write_text(flipped(text, digits, rng))
        status, said = answer(consumer, path)
        assert status != 0, f"{digits.field}: {said}"
        with pytest.raises(VectorError):
            read_vectors(path)


@pytest.mark.parametrize("name", NAMES)
def test_a_flipped_digit_of_an_answer_differs_by_itself(name: str, consumer: Path, tmp_path: Path) -> None:
    """The file is signed anew: only the case's own content can show it."""
    text, path, rng, seen = small(name), tmp_path / f"{name}.json", Random(2), 0
    for digits in sampled(text, 2):
        if digits.field in ANSWERS:
            document = json.loads(flipped(text, digits, rng))
            document["checksum"] = checksum(document)
            path.write_text(json.dumps(document))
            status, said = answer(consumer, path)
            assert status == 1, f"{digits.field}: {said}"
            assert list(differences(name, read_vectors(path))), digits.field
            seen += 1
    assert seen >= 6


def test_an_answer_in_words_differs_by_itself(consumer: Path, tmp_path: Path) -> None:
    for name, old, new in (
        ("demand", '"result": "refused"', '"result": "counted"'),
        ("fits", '"result": "does_not_fit"', '"result": "fits"'),
        ("reserve", '"kind": "leaf"', '"kind": "state"'),
        ("reserve", '"by": ["locks"]', '"by": ["gates"]'),
        ("counterexamples", '"bound": "bytes"', '"bound": "ids"'),
    ):
        text = (FOLDER / f"{name}.json").read_text()
        assert old in text
        path = tmp_path / f"{name}.json"
        path.write_text(text.replace(old, new, 1))
        assert answer(consumer, path)[0] == 2
        assert answer(consumer, "--no-checksum", path)[0] == 1, new


def test_the_consumer_says_what_is_wrong_with_a_file(consumer: Path, tmp_path: Path) -> None:
    path = tmp_path / "fits.json"
    for content in ("", "{", "[1, 2]", '{"kind": "fits"}', '{"a": 01}', '"text'):
        path.write_text(content)
        status, said = answer(consumer, path)
        assert (status, "fix: poolproof vectors export" in said) == (2, True), content
    assert answer(consumer)[0] == 2
    assert answer(consumer, tmp_path / "nowhere.json")[0] == 2
