"""A real browser for tests: Debian's Chromium driven by Playwright, and axe-core, which finds what shuts people out."""

import hashlib
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NAMES = ("chromium", "chromium-browser", "google-chrome")
AXE = "4.14.1"
AXE_DIGEST = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"
"""SHA-256 of axe.min.js in the package of npm; MPL-2.0, for tests only."""


class MissingPartError(Exception):
    """A part that cannot be had here, and what to do."""


@contextmanager
def chromium() -> Iterator["Browser"]:
    """The browser; MissingPartError where there is none."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise MissingPartError("playwright is not installed: pip install playwright") from None
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        raise MissingPartError(f"there is no browser, none of {', '.join(NAMES)}: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


def axe() -> str:
    """The script of axe-core, fetched from npm once and kept in the user's cache; MissingPartError where it cannot be."""
    kept = Path(platformdirs.user_cache_dir("topnrank-tests")) / f"axe-core-{AXE}.min.js"
    if not kept.exists():
        if shutil.which("npm") is None:
            raise MissingPartError("axe-core comes from npm, which is not installed: apt-get install npm")
        with tempfile.TemporaryDirectory() as folder:
            command = ["npm", "pack", "--silent", f"axe-core@{AXE}"]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
            if done.returncode:
                raise MissingPartError(f"axe-core cannot be fetched from npm: {done.stderr.strip()[-300:]}")
            with tarfile.open(Path(folder) / f"axe-core-{AXE}.tgz") as package:
                script = package.extractfile("package/axe.min.js")
                assert script is not None
                content = script.read()
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(content)
    content = kept.read_bytes()
    if hashlib.sha256(content).hexdigest() != AXE_DIGEST:
        kept.unlink()
        raise MissingPartError(f"axe-core {AXE} is not the one that the tests were written for; it was thrown away")
    return content.decode()
