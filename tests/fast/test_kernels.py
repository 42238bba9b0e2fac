import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.fast.devices import HAS_CUDA, KERNEL_DEVICE

from poolproof_fast import naive
from poolproof_fast.device_work import DeviceWork, default_kernels, device_work

PAGE_BYTES = [1, 3, 48, 176, 256, 4104, 20000]
COUNTS = [0, 1, 2, 7, 130]


@pytest.fixture(scope="module")
def kernels() -> DeviceWork:
    return device_work("triton")


def noise(generator: np.random.Generator, size: int) -> torch.Tensor:
    return torch.from_numpy(generator.integers(0, 256, size, dtype=np.uint8)).to(KERNEL_DEVICE)


def pages_among(generator: np.random.Generator, page_count: int, count: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.from_numpy(generator.permutation(page_count)[:count]).to(KERNEL_DEVICE, dtype)


@pytest.mark.parametrize("page_bytes", PAGE_BYTES)
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_copy_and_fill_equal_their_twins(kernels: DeviceWork, page_bytes: int, dtype: torch.dtype) -> None:
    generator = np.random.default_rng(page_bytes)
    for count in COUNTS if page_bytes < 1000 else COUNTS[:-1]:
        page_count = 2 * count + 3
        arena = noise(generator, page_count * page_bytes + int(generator.integers(page_bytes)))
        twin = arena.clone()
        pages = pages_among(generator, page_count, 2 * count, dtype)
        for work, target in ((kernels, arena), (naive, twin)):
            work.copy_pages(target, page_bytes, pages[:count], pages[count:])
        assert torch.equal(arena, twin)
        value = int(generator.integers(256))
        for work, target in ((kernels, arena), (naive, twin)):
            work.fill_pages(target, page_bytes, pages[:count], value)
        assert torch.equal(arena, twin)


@pytest.mark.parametrize("offset", [1, 2, 4, 8])
def test_an_arena_that_begins_anywhere_is_copied_in_words_that_its_address_allows(
    kernels: DeviceWork, offset: int
) -> None:
    generator = np.random.default_rng(offset)
    arena = noise(generator, 64 * 12 + offset)
    twin = arena.clone()
    pages = pages_among(generator, 12, 8, torch.int32)
    for work, target in ((kernels, arena), (naive, twin)):
        work.copy_pages(target[offset:], 64, pages[:4], pages[4:])
        work.fill_pages(target[offset:], 64, pages[:2], 0x81)
    assert torch.equal(arena, twin)


@pytest.mark.parametrize("count", [*COUNTS, 1024, 1500])
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_scatter_equals_its_twin(kernels: DeviceWork, count: int, dtype: torch.dtype) -> None:
    generator = np.random.default_rng(count)
    table = torch.zeros(2000, dtype=torch.int32, device=KERNEL_DEVICE)
    twin = table.clone()
    positions = pages_among(generator, 2000, count, dtype)
    values = positions.to(torch.int32) * 3 + 1
    repeated, their_values = torch.cat([positions, positions]), torch.cat([values, values])
    for work, target in ((kernels, table), (naive, twin)):
        work.scatter(target, repeated, their_values)
    assert torch.equal(table, twin)
    assert int(table.count_nonzero()) == count


@pytest.mark.parametrize("page_tokens", [1, 16, 48])
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_translate_equals_its_twin(kernels: DeviceWork, page_tokens: int, dtype: torch.dtype) -> None:
    generator = np.random.default_rng(page_tokens)
    page_of = torch.from_numpy(generator.integers(0, 5000, 90, dtype=np.int32)).to(KERNEL_DEVICE)
    for count in (0, 1, 2, 1023, 1024, 1025, 3000):
        ids = torch.from_numpy(generator.integers(0, 90 * page_tokens, count)).to(KERNEL_DEVICE, dtype)
        found, expected = torch.full_like(ids, -1), torch.full_like(ids, -1)
        kernels.translate(page_of, ids, page_tokens, found)
        naive.translate(page_of, ids, page_tokens, expected)
        assert torch.equal(found, expected)
        one_by_one = [int(page_of[v // page_tokens]) * page_tokens + v % page_tokens for v in ids[:50].tolist()]
        assert expected[:50].tolist() == one_by_one


def test_slots_may_be_wider_than_ids(kernels: DeviceWork) -> None:
    page_of = torch.tensor([0, 2**30], dtype=torch.int32, device=KERNEL_DEVICE)
    ids = torch.tensor([16, 31], dtype=torch.int32, device=KERNEL_DEVICE)
    for work in (kernels, naive):
        slots = torch.zeros(2, dtype=torch.int64, device=KERNEL_DEVICE)
        work.translate(page_of, ids, 16, slots)
        assert slots.tolist() == [2**34, 2**34 + 15]


def test_kernels_are_chosen_by_name_and_device() -> None:
    assert device_work("torch") is naive
    assert (default_kernels(torch.device("cpu")), default_kernels(torch.device("cuda"))) == ("torch", "triton")
    with pytest.raises(ValueError, match="kernels 'cuda'; expected 'torch' or 'triton'"):
        device_work("cuda")  # type: ignore[arg-type]


def run_python(source: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    return subprocess.run(
        [sys.executable, "-c", source], env={**kept, **environment}, capture_output=True, text=True, check=False
    )


@pytest.mark.skipif(HAS_CUDA, reason="only without a GPU is the interpreter needed")
def test_triton_is_imported_only_when_asked_for_and_as_a_compiler_it_is_reported() -> None:
    result = run_python(
        "import sys, poolproof_fast.pool; print('triton' in sys.modules); import triton, poolproof_fast.kernels"
    )
    assert result.stdout == "False\n"
    assert "triton was imported without its interpreter; expected TRITON_INTERPRET=1" in result.stderr


COMPILE = Path(__file__).with_name("compile_kernels.py")


def test_kernels_compile_for_gpus_and_move_16_bytes_at_a_time(tmp_path: Path) -> None:
    """The interpreter accepts what the compiler does not, and says nothing of how wide the loads are."""
    result = run_python(COMPILE.read_text(), TRITON_INTERPRET="0", TRITON_CACHE_DIR=str(tmp_path))
    assert result.returncode == 0, result.stderr
    wide = dict(line.split(":") for line in result.stdout.splitlines())
    assert wide == {
        f"{kernel} sm_{capability}": answer
        for capability in (80, 90)
        for kernel, answer in {
            "copy 64": "yes",
            "copy 4096": "yes",
            "copy 65536": "yes",
            "copy 48": "yes",
            "copy 4104": "no",
            "fill 4096": "yes",
            "scatter": "no",
            "translate int32": "yes",
            "translate int64": "yes",
        }.items()
    }
