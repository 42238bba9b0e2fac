"""The pictures in docs/report.md: `python docs/report_screenshots.py`, with chromium and sglang==0.5.23 installed."""

import sys
import tempfile
from pathlib import Path

from poolproof_conformance.cli.main import run
from poolproof_conformance.reporting.browser import opened_browser, what_is_missing

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
TRACES = ROOT / "conformance" / "poolproof_conformance" / "known_traces"
PICTURES = {
    "report-overview.png": ("", "light", 1, 1280, 1500),
    "report-step.png": ("V1-float-edge-counted/1", "light", 1, 1280, 2130),
    "report-dark.png": ("V6-absorption-behind-gate/4", "dark", 1, 1280, 1500),
    "report-zoom.png": ("V1-float-edge-counted/1", "light", 2, 1280, 1900),
}
"""File to address, colour scheme, zoom, width and height in pixels."""


def main() -> int:
    """Make the report of V1 to V10 and the seed's cases on the release, and take the pictures."""
    if missing := what_is_missing():
        print(f"error: {missing}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "report.html")
        paths = [*TRACES.glob("V*.json"), *TRACES.glob("seed-tri-*.json")]
        traces = sorted(str(path.relative_to(ROOT)) for path in paths)
        expected = str(DOCS.relative_to(ROOT) / "report-expected.yaml")
        run(["report", *traces, "--target", "sglang==0.5.23", "--expected", expected, "--html", str(page)])
        with opened_browser() as browser:
            for name, (fragment, scheme, zoom, width, height) in PICTURES.items():
                browser.size(width, height, zoom)
                browser.prefer(scheme)
                browser.open(page, fragment)
                (DOCS / name).write_bytes(browser.picture())
            if complaints := browser.complaints():
                print("\n".join(complaints), file=sys.stderr)
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
