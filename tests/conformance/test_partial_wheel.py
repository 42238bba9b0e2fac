"""Some files of a wheel over HTTP ranges, held against what the wheel says of itself."""

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from poolproof_conformance.partial_wheel import PartialWheelError, extract_some

from .wheels import write_wheel

BIG = bytes(range(256)) * 40_000
"""Ten megabytes that must stay where they are."""
FILES = {"p/a.py": b"a = 1", "p/big.so": BIG, "p/sub/b.py": b"b = 2"}
Serve = Callable[[Path, bool], tuple[str, list[int]]]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Serve one file, with or without ranges: (its URL, list of the bytes in each answer)."""
    servers: list[HTTPServer] = []

    def start(path: Path, ranges: bool) -> tuple[str, list[int]]:
        data, sent = path.read_bytes(), []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked = self.headers["Range"]
                if asked and ranges:
                    first, last = map(int, asked.removeprefix("bytes=").split("-"))
                    body = data[first : last + 1]
                    self.send_response(206)
                    self.send_header("Content-Range", f"bytes {first}-{last}/{len(data)}")
                else:
                    body = data
                    self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                sent.append(len(body))
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        server = HTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}/p.whl", sent

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def python_file(name: str) -> bool:
    return name.endswith(".py")


def extracted(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_only_what_is_wanted_is_fetched(tmp_path: Path, serve: Serve) -> None:
    url, sent = serve(write_wheel(tmp_path / "p.whl", FILES), True)
    assert extract_some(url, tmp_path / "out", python_file) == 3
    out = extracted(tmp_path / "out")
    assert set(out) == {"p/a.py", "p/sub/b.py", "p-1.dist-info/RECORD"}
    assert out["p/sub/b.py"] == b"b = 2"
    assert sum(sent) < len(BIG) / 2


def test_a_server_without_ranges_will_do(tmp_path: Path, serve: Serve) -> None:
    url, _ = serve(write_wheel(tmp_path / "p.whl", FILES), False)
    assert extract_some(url, tmp_path / "out", python_file) == 3
    assert extracted(tmp_path / "out")["p/a.py"] == b"a = 1"


@pytest.mark.parametrize(
    ("files", "forged", "said"),
    [
        ({"p/a.py": b"a = 1"}, {"p/a.py": b"a = 2"}, "SHA-256 is not the one"),
        ({"../a.py": b"a = 1"}, {}, "leads out of the wheel"),
        ({"/a.py": b"a = 1"}, {}, "leads out of the wheel"),
    ],
)
def test_files_that_must_not_be_written(
    files: dict[str, bytes], forged: dict[str, bytes], said: str, tmp_path: Path
) -> None:
    wheel = write_wheel(tmp_path / "p.whl", files, forged)
    with pytest.raises(PartialWheelError, match=said):
        extract_some(wheel.as_uri(), tmp_path / "out", python_file)
    assert not (tmp_path / "a.py").exists() and not extracted(tmp_path / "out")


def test_what_is_no_wheel(tmp_path: Path) -> None:
    (tmp_path / "p.whl").write_bytes(b"no zip")
    with pytest.raises(PartialWheelError, match="not a zip file"):
        extract_some((tmp_path / "p.whl").as_uri(), tmp_path / "out", python_file)
    with pytest.raises(PartialWheelError, match="No such file"):
        extract_some((tmp_path / "q.whl").as_uri(), tmp_path / "out", python_file)
