"""Text, code and figures of a student's, made harmless and short enough for a page."""

from __future__ import annotations

import base64
import binascii
import re
import struct
import unicodedata
from dataclasses import dataclass
from html import escape
from typing import Any

# Colours, titles and links of terminals, whole ones; what is left of others is spelled out.
TERMINAL = re.compile(
    r"\x1b\][^\x07\x1b\n]{0,400}(?:\x07|\x1b\\)|[\x9b][0-?]*[ -/]*[@-~]|\x1b\[[0-?]*[ -/]*[@-~]"
    r"|\x1b[()][0-9A-Za-z]|\x1b[=>78cDEHM]"
)
# Joiners that some scripts and emoji need.
JOINERS = "\u200c\u200d"
# What an answer or an output should hold of the instructor's never; cut all the same.
MARKED = re.compile(r"### BEGIN (SOLUTION|HIDDEN TESTS).*?(?:### END \1[^\n]*|\Z)", re.DOTALL)
# Room that a short piece of text leaves for what says that it was cut.
SAYING = 120
PNG = b"\x89PNG\r\n\x1a\n"
FIGURES = 20
FIGURE_BYTES = 2_000_000
FIGURE_PIXELS = 25_000_000
# Class names in the page, by what Pygments calls a token.
TOKENS = (
    ("Token.Keyword", "k"),
    ("Token.Operator.Word", "k"),
    # Most of a docstring is the course's; the student's own lines should stand out.
    ("Token.Literal.String.Doc", "d"),
    ("Token.Literal.String", "s"),
    ("Token.Literal.Number", "n"),
    ("Token.Comment", "c"),
    ("Token.Name.Function", "f"),
    ("Token.Name.Class", "f"),
    ("Token.Name.Decorator", "f"),
)


def plain(text: str) -> str:
    r"""Return text in which nothing steers a terminal, a browser or the direction of reading.

    Characters that do are spelled out, as in Python: ``\u202e``.
    """
    text = TERMINAL.sub("", text.replace("\r\n", "\n"))
    return "".join(map(_spelled, text))


def _spelled(character: str) -> str:
    if character in "\n\t" or character in JOINERS or " " <= character <= "~":
        return character
    if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp"):
        return character.encode("unicode_escape", "surrogatepass").decode("ascii")
    return character


def printed(text: str) -> str:
    """Return what a terminal would still show of lines that were written over each other."""
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join(line.rstrip("\r").rsplit("\r", 1)[-1] for line in lines)


@dataclass
class Room:
    """How many bytes of a page are left for what students write.

    Parameters
    ----------
    left : int
        Bytes of HTML.
    """

    left: int

    def take(self, text: str, limit: int, *, code: bool = False, share: int | None = None) -> str:
        """Return text as HTML, cut where it is too long, which is said.

        Parameters
        ----------
        text : str
            Whatever a student wrote or printed.
        limit : int
            Characters.
        code : bool, default False
            Whether it is Python, and is coloured if there is room for that.
        share : int, optional
            Bytes; all that is left if not given.

        Returns
        -------
        str
            It holds no tag but those of the colours and of the remark.
        """
        share = max(min(self.left if share is None else share, self.left) - SAYING, 0)
        # Escapes of terminals make a raw text longer, never shorter.
        raw = text[: 2 * limit]
        if not code:
            raw = printed(raw)
        whole = plain(MARKED.sub("# (not shown)", raw)).strip("\n")
        short = whole[:limit]
        form = coloured(short) if code else escape(short)
        if code and _size(form) > share:
            form = escape(short)
        while _size(form) > share:
            short = short[: min(int(len(short) * share / _size(form)), len(short) - 1)]
            form = escape(short)
        if len(short) < len(whole) or len(text) > 2 * limit:
            form += f'<span class="cut">… cut here: {len(text):,} characters in all</span>'
        self.left -= _size(form)
        return form


def _size(form: str) -> int:
    return len(form.encode())


def coloured(source: str) -> str:
    """Return Python source as HTML, with a class for each kind of word."""
    from pygments.lexers.python import PythonLexer

    form, last, kept = [], "", ""
    for kind, text in PythonLexer(stripnl=False, ensurenl=False).get_tokens(source):
        name = str(kind)
        style = next((style for token, style in TOKENS if name.startswith(token)), "")
        if style == last or (text.isspace() and last in ("c", "d")):
            kept += text
            continue
        form.append(_span(kept, last))
        last, kept = style, text
    form.append(_span(kept, last))
    return "".join(form)


def _span(text: str, style: str) -> str:
    return f'<span class="{style}">{escape(text)}</span>' if style and text else escape(text)


def figure(data: Any) -> tuple[str, int, int] | str:
    """Return a PNG as an address of its own, its width and height; or why it is not shown."""
    try:
        content = base64.b64decode("".join(str(data).split()), validate=True)
        width, height = struct.unpack(">II", content[16:24])
    except (binascii.Error, ValueError, struct.error):
        return "it is not a PNG"
    if not content.startswith(PNG) or content[12:16] != b"IHDR" or not (width and height):
        return "it is not a PNG"
    if len(content) > FIGURE_BYTES or width * height > FIGURE_PIXELS:
        return f"it is too large ({width} by {height} pixels, {len(content):,} bytes)"
    return f"data:image/png;base64,{base64.b64encode(content).decode()}", width, height
