"""vLLM's cache manager behind its shim, on a fake of the package: what runs, what is stood in for, what is refused."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

FAKE = {
    "vllm/__init__.py": "raise RuntimeError('the whole engine')",
    "vllm/v1/__init__.py": "raise RuntimeError('the whole engine')",
    "vllm/v1/core/__init__.py": "raise RuntimeError('the whole engine')",
    "vllm/config/__init__.py": "raise RuntimeError('the configuration')",
    "vllm/platforms/__init__.py": "raise RuntimeError('the platforms')",
    "vllm/utils/__init__.py": "",
    "vllm/utils/hashing.py": "def sha256(what): return hash(str(what))",
    "vllm/v1/request.py": """
class Request:
    def __init__(self, request_id, tokens, sampling, pooling, block_hasher=None):
        assert not pooling.skip_reading_prefix_cache
        self.request_id, self.tokens = request_id, tokens
        self.block_hashes = block_hasher(self) if block_hasher else []
""",
    "vllm/v1/kv_cache_interface.py": """
class KVCacheConfig:
    def __init__(self, num_blocks, kv_cache_tensors, kv_cache_groups):
        self.num_blocks, self.kv_cache_groups = num_blocks, kv_cache_groups
class FullAttentionSpec:
    def __init__(self, **sizes): self.sizes = sizes
class SlidingWindowSpec(FullAttentionSpec): pass
def KVCacheGroupSpec(names, spec): return spec
""",
    "vllm/v1/core/kv_cache_utils.py": """
def init_none_hash(function): pass
def get_request_block_hasher(size, function):
    return lambda request: [function((request.request_id, i)) for i in range(len(request.tokens) // size)]
""",
    "vllm/v1/core/kv_cache_manager.py": """
import zmq
from vllm.config import VllmConfig, get_current_vllm_config_or_none
from vllm.platforms import current_platform
class Coordinator: pass
class BlockPool: pass
class KVCacheManager:
    def __init__(self, config, *, max_model_len, scheduler_block_size, hash_block_size, enable_caching):
        self.coordinator, self.block_pool = Coordinator(), BlockPool()
        self.free_blocks = {number: None for number in range(1, config.num_blocks)}
        self.block_pool.cached_block_hash_to_block = {}
        self.held = {}
    def allocate_slots(self, request, tokens):
        cached = self.block_pool.cached_block_hash_to_block
        count = 2 * tokens // 16
        if count > len(self.free_blocks): return None
        blocks = list(self.free_blocks)[:count]
        for block in blocks:
            cached.pop(self.free_blocks.pop(block), None)
        hashes = [(h, group) for h in request.block_hashes for group in (0, 1)]
        self.held[request.request_id] = list(zip(blocks, hashes or [None] * count))
        cached.update({h: block for block, h in self.held[request.request_id] if h})
        return blocks
    def free(self, request):
        freed = dict(self.held.pop(request.request_id))
        old = {} if all(freed.values()) else self.free_blocks
        self.free_blocks = {**freed, **self.free_blocks} if old else {**self.free_blocks, **freed}
""",
}
"""The files that the benchmark imports, with as much in them as it asks for."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in FAKE.items():
        path = tmp_path / "release" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "release" / "vllm-9.9.dist-info").mkdir()
    return tmp_path / "release"


def in_a_process(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)


def test_the_works_on_a_fake(root: Path) -> None:
    done = in_a_process(f"""
import json, sys
from pathlib import Path
from poolproof_conformance.bench.runs import Bench
from poolproof_conformance.bench.subject import CannotError
from poolproof_conformance.bench.vllm_subject import VllmSubject
bench, figures = Bench(VllmSubject(Path({str(root)!r}), cached=True)), {{}}
versions = bench.subject.versions()
for cached in (True, False):
    bench.subject.cached = cached
    for work in ("alloc-free", "reserve-room", "evict-1", "refuse"):
        bench.prepare(work, 200)
        figures[f"{{work}} {{cached}}"] = bench.run()
try:
    bench.prepare("float-move", 200)
except CannotError as error:
    figures["float-move"] = str(error)
left = [name for name in sys.modules if name.partition(".")[0] == "zmq"]
print(json.dumps([versions, figures, left]))
""")
    assert done.returncode == 0, done.stderr
    versions, figures, left = json.loads(done.stdout)
    assert versions == {
        "release": "vllm==9.9",
        "coordinator": "Coordinator",
        "requests": "cached",
    }
    assert figures.pop("float-move") == "vllm has no float and moves no pages"
    assert len(figures) == 8 and all(figure > 0 for figure in figures.values())
    assert left == []


def test_an_import_that_the_shim_does_not_know_is_named(root: Path) -> None:
    (root / "vllm/v1/request.py").write_text("import nobody_has_this")
    done = in_a_process(f"""
from pathlib import Path
from poolproof_conformance.vllm.engine import Engine
Engine(Path({str(root)!r}))
""")
    assert "vllm imports 'nobody_has_this', which is neither installed nor stood in for" in done.stderr


def test_calling_what_is_cut_is_an_error(root: Path) -> None:
    done = in_a_process(f"""
import sys
from pathlib import Path
from poolproof_conformance.vllm.engine import Engine
Engine(Path({str(root)!r}))
sys.modules["vllm.v1.core.kv_cache_manager"].VllmConfig()
""")
    assert "the engine called vllm.config.VllmConfig" in done.stderr


def test_a_folder_without_the_engine(tmp_path: Path) -> None:
    done = in_a_process(f"""
from pathlib import Path
from poolproof_conformance.vllm.engine import Engine
Engine(Path({str(tmp_path)!r}))
""")
    assert "holds no vllm/v1/core" in done.stderr and "poolproof targets install vllm==VERSION" in done.stderr
