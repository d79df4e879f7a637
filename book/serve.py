"""Serve the built book to this machine's browser."""

from __future__ import annotations

import argparse
import os
import sys
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "_build" / "html"


class Server(ThreadingHTTPServer):
    """A server that never shares its port: Windows would let two servers have the same one."""

    allow_reuse_address = os.name != "nt"


class Handler(SimpleHTTPRequestHandler):
    """Files of the site, without a line of log for each request."""

    extensions_map = SimpleHTTPRequestHandler.extensions_map | {".woff2": "font/woff2"}

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Show lost readers the site's own page, as the host of the published site does."""
        page = Path(self.directory) / "404.html"
        if code != HTTPStatus.NOT_FOUND or not page.is_file():
            super().send_error(code, message, explain)
            return
        content = page.read_bytes()
        self.send_response(code)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Stay quiet."""


def main() -> int:
    """Serve until Ctrl-C; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8000, help="default: 8000")
    parser.add_argument("--check", action="store_true", help="only say whether the port is free")
    options = parser.parse_args()
    port = options.port
    if not 0 < port < 65536:
        parser.error(f"--port must be from 1 to 65535, got {port}")

    # book/build.py writes this file last, so it is missing after a build that failed.
    if not options.check and not (SITE / ".made-from").is_file():
        return _fail("there is no finished book to serve; run `make book` first")
    try:
        server = Server(("127.0.0.1", port), partial(Handler, directory=SITE))
    except OSError as error:
        other = port + 1 if 1024 <= port < 65535 else 8001
        return _fail(
            f"port {port} can't be used ({error.strerror}); "
            f"choose another one: make course PORT={other}"
        )
    with server:
        if options.check:
            return 0
        print(f"The course is at http://localhost:{port} (stop with Ctrl-C)", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()
    return 0


def _fail(message: str) -> int:
    print(message, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
