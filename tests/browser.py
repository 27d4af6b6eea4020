"""A browser for tests that look at pictures: headless Chromium, where there is one."""

from __future__ import annotations

import shutil

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def find_browser() -> str | None:
    """The path of the first that is installed."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)
