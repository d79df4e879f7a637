"""Take the pictures of the README from the built book."""

from __future__ import annotations

import argparse
import io
import shutil
import sys
import threading
from functools import partial
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright
from serve import Handler, Server

ROOT = Path(__file__).resolve().parents[1]
PAGES = {
    "landing.png": ("index.html", ".bd-article h1"),
    "chapter-2.png": ("02-sinusoidal.html", ".cell:has(#fig-sinusoidal-table)"),
}
SIZE = {"width": 1280, "height": 800}
NAMES = ("chromium", "chromium-browser", "google-chrome")


def make(folder: Path) -> list[Path]:
    """Take every picture and return where they are."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        sys.exit("screenshots: no Chromium on this machine; install Debian's package chromium")
    handler = partial(Handler, directory=ROOT / "_build" / "html")
    made = []
    with Server(("127.0.0.1", 0), handler) as server, sync_playwright() as driver:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE, reduced_motion="reduce", color_scheme="light")
        for name, (address, place) in PAGES.items():
            page.goto(f"http://localhost:{server.server_port}/{address}", wait_until="networkidle")
            page.evaluate(
                "place => document.querySelector(place).scrollIntoView({behavior: 'instant'})",
                place,
            )
            page.wait_for_timeout(500)  # the header's shadow and a figure's first drawing
            picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
            # A palette makes the file a third as large.
            picture.quantize(128, dither=Image.Dither.NONE).save(folder / name, optimize=True)
            made.append(folder / name)
        browser.close()
        server.shutdown()
    return made


def main() -> int:
    """Read the command line; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / ".github")
    for path in make(parser.parse_args().folder):
        print(f"{path}: {path.stat().st_size / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
