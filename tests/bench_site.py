"""Measure the built site with Lighthouse, on a phone and on a desk, and compare with the bars.

The site is served as a static host serves it: compressed, with cache headers. Each page is measured
three times and the median counts, since a loaded machine is slow, not wrong. Lighthouse is the only
part that needs Node; it is installed into ``_build/lighthouse``.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import statistics
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "_build" / "html"
TOOL = ROOT / "_build" / "lighthouse"
RESULTS = ROOT / "_build" / "bench-site.json"
LIGHTHOUSE = "12.8.2"  # the newest that runs on Node 18 and 20
CHROMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
)
PAGES = {"landing": "", "chapter 2": "02-sinusoidal.html", "ledger": "05-ledger.html"}
DEVICES = {"mobile": (), "desktop": ("--preset=desktop",)}
BARS = {
    "performance": {"mobile": 0.90, "desktop": 0.97},
    "accessibility": {"mobile": 1.0, "desktop": 1.0},
    "best-practices": {"mobile": 1.0, "desktop": 1.0},
    "seo": {"mobile": 1.0, "desktop": 1.0},
}
TIMES = {
    "first-contentful-paint": "FCP ms",
    "largest-contentful-paint": "LCP ms",
    "total-blocking-time": "TBT ms",
    "cumulative-layout-shift": "CLS",
    "total-byte-weight": "bytes",
}
COMPRESSED = {".html", ".css", ".js", ".svg", ".xml", ".txt", ".json"}


class MissingToolError(Exception):
    """What has to be installed, in one sentence."""


class StaticHost(SimpleHTTPRequestHandler):
    """A static host: text compressed, files kept by the browser, the site below a folder."""

    protocol_version = "HTTP/1.1"
    folder = "/"
    extensions_map = SimpleHTTPRequestHandler.extensions_map | {
        ".js": "text/javascript",
        ".woff2": "font/woff2",
    }

    def do_GET(self) -> None:
        """Send a file, or the page for lost readers."""
        path = self.path.partition("?")[0].partition("#")[0]
        name = path.removeprefix(self.folder) or "index.html"
        file = SITE / (f"{name}index.html" if name.endswith("/") else name)
        found = path.startswith(self.folder) and file.is_file() and SITE in file.resolve().parents
        if not found:
            file = SITE / "404.html"
        content = file.read_bytes()
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", self.guess_type(str(file)))
        self.send_header(
            "Cache-Control", "max-age=31536000" if "?v=" in self.path else "max-age=600"
        )
        if file.suffix in COMPRESSED and "gzip" in self.headers.get("Accept-Encoding", ""):
            content = gzip.compress(content, 9, mtime=0)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        with suppress(ConnectionError):  # a browser may leave before the end
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Stay quiet."""


@contextmanager
def served(folder: str = "/") -> Iterator[str]:
    """Serve the built site below a folder; give its address."""
    handler = type("Host", (StaticHost,), {"folder": folder})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_port}{folder}"
        server.shutdown()


def installed_lighthouse() -> Path:
    """Return Lighthouse's program, installed if it is not there yet."""
    for name, advice in {"node": "install Node.js 18 or newer", "npm": "install npm"}.items():
        if shutil.which(name) is None:
            raise MissingToolError(f"{name} was not found, and Lighthouse needs it; {advice}")
    package = TOOL / "node_modules" / "lighthouse" / "package.json"
    found = json.loads(package.read_text(encoding="utf-8"))["version"] if package.is_file() else ""
    if found != LIGHTHOUSE:
        print(f"Installing Lighthouse {LIGHTHOUSE} into {TOOL.relative_to(ROOT)} ...", flush=True)
        TOOL.mkdir(parents=True, exist_ok=True)
        command = [
            "npm",
            "install",
            "--no-audit",
            "--no-fund",
            "--silent",
            f"lighthouse@{LIGHTHOUSE}",
        ]
        if subprocess.run(command, cwd=TOOL, check=False).returncode:
            raise MissingToolError("npm could not install Lighthouse; is there a network?")
    return TOOL / "node_modules" / "lighthouse" / "cli" / "index.js"


def measure(program: Path, chrome: str, address: str, options: tuple[str, ...]) -> dict[str, float]:
    """Run Lighthouse once; return its scores and times."""
    categories = ",".join(BARS)
    command = ["node", str(program), address, "--quiet", "--output=json", *options]
    command += [f"--only-categories={categories}", f"--chrome-flags={' '.join(FLAGS)}"]
    environment = {**os.environ, "CHROME_PATH": chrome}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if run.returncode:
        raise MissingToolError(f"Lighthouse failed on {address}: {run.stderr.strip()[-300:]}")
    report = json.loads(run.stdout)
    scores = {name: report["categories"][name]["score"] or 0.0 for name in BARS}
    times = {name: report["audits"][name]["numericValue"] for name in TIMES}
    failed = [
        audit["id"]
        for name in BARS
        if name != "performance"
        for audit in (report["audits"][a["id"]] for a in report["categories"][name]["auditRefs"])
        if audit["score"] is not None and audit["score"] < 1
    ]
    return scores | times | {"failed": failed}


def median(runs: list[dict[str, float]]) -> dict[str, float]:
    """Return the median of each number, and every audit that failed in any run."""
    result = {name: statistics.median(run[name] for run in runs) for name in (*BARS, *TIMES)}
    return result | {"failed": sorted({name for run in runs for name in run["failed"]})}


def main() -> int:
    """Measure, print a table, write the figures; return 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3, help="runs of each page; default: 3")
    parser.add_argument("--pages", nargs="*", default=list(PAGES), choices=list(PAGES))
    parser.add_argument("--devices", nargs="*", default=list(DEVICES), choices=list(DEVICES))
    options = parser.parse_args()
    build = [sys.executable, str(ROOT / "book" / "build.py")]
    if subprocess.run(build, check=False).returncode:
        return 1
    try:
        program = installed_lighthouse()
        chrome = next(filter(None, map(shutil.which, CHROMES)), None)
        if chrome is None:
            raise MissingToolError("no Chromium was found; install Debian's package chromium")
        return _measure_all(program, chrome, options)
    except MissingToolError as error:
        print(error, file=sys.stderr)
        return 1


def _measure_all(program: Path, chrome: str, options: argparse.Namespace) -> int:
    columns = [*BARS, *TIMES.values()]
    print(f"{'page':<12}{'device':<9}" + "".join(f"{name:>16}" for name in columns), flush=True)
    results, missed = {}, []
    with served() as address:
        for page in options.pages:
            for device in options.devices:
                runs = [
                    measure(program, chrome, address + PAGES[page], DEVICES[device])
                    for _ in range(options.runs)
                ]
                result = median(runs)
                results.setdefault(page, {})[device] = result | {"runs": runs}
                line = "".join(f"{result[name]:>16.2f}" for name in BARS)
                line += "".join(f"{result[name]:>16.2f}" for name in TIMES)
                print(f"{page:<12}{device:<9}{line}", flush=True)
                for name in result["failed"]:
                    print(f"{'':<21}fails {name}")
                missed += [
                    f"{page}, {device}: {name} {result[name]:.2f} < {bars[device]:.2f}"
                    for name, bars in BARS.items()
                    if result[name] < bars[device]
                ]
    RESULTS.write_text(json.dumps({"bars": BARS, "pages": results}, indent=1), encoding="utf-8")
    print(f"written to {RESULTS.relative_to(ROOT)}")
    print("\n".join(f"MISSED {line}" for line in missed) or "every bar is met")
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
