"""A real browser to look at a report with: for tests and for the screenshots in docs/. Debian's chromium, no network.

Needs selenium (`pip install 'poolproof[dev]'`) and the packages chromium and chromium-driver.
"""

import base64
import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--force-prefers-reduced-motion",
)


def what_is_missing() -> str:
    """What is not installed here, in words; empty where a browser can be started."""
    if find_spec("selenium") is None:
        return "selenium is not installed: pip install 'poolproof[dev]'"
    for program, package in (("chromium", "chromium"), ("chromedriver", "chromium-driver")):
        if shutil.which(program) is None:
            return f"{program} is not installed: apt-get install {package}"
    return ""


class Browser:
    """One window on one page."""

    def __init__(self, driver: "Chrome") -> None:
        self.driver: Any = driver  # selenium types only some of its methods

    def open(self, page: Path, fragment: str = "") -> None:
        """Load the page anew, at a fragment of its address."""
        self.driver.get("about:blank")
        self.driver.get(page.absolute().as_uri() + (f"#{fragment}" if fragment else ""))

    def size(self, width: int, height: int, zoom: int = 1) -> None:
        """A window of so many pixels; a zoom of 2 shows half as many, twice as large, as a browser's own zoom does."""
        metrics = {"width": width // zoom, "height": height // zoom, "deviceScaleFactor": zoom, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def prefer(self, scheme: str) -> None:
        """`light` or `dark`."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def press(self, *keys: str) -> None:
        """Keys on the keyboard, one after the other."""
        from selenium.webdriver.common.action_chains import ActionChains

        for key in keys:
            ActionChains(self.driver).send_keys(key).perform()

    def ask(self, script: str) -> Any:
        """What the script returns: `return document.title`."""
        return self.driver.execute_script(script)

    def complaints(self) -> list[str]:
        """Errors and warnings in the console since the last call."""
        return [str(entry["message"]) for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Addresses that were asked for since the last call."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]

    def picture(self) -> bytes:
        """The window as PNG."""
        shot = self.driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
        return base64.b64decode(shot["data"])


@contextmanager
def opened_browser() -> Iterator[Browser]:
    """A browser with a profile of its own, gone afterwards."""
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    options = ChromeOptions()
    options.binary_location = shutil.which("chromium") or "chromium"
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    with tempfile.TemporaryDirectory(prefix="poolproof-browser-", ignore_cleanup_errors=True) as profile:
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        driver = Chrome(options=options, service=Service(shutil.which("chromedriver")))
        try:
            yield Browser(driver)
        finally:
            driver.quit()
