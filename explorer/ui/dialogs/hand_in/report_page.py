"""A report as one HTML file, and as a PDF: no script, no network, every text escaped."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from html import escape

from PySide6.QtCore import QCoreApplication, QDate, QLocale
from PySide6.QtGui import QFont, QTextDocument

from explorer.figures.text.characters import printable
from explorer.ui.dialogs.hand_in.pdf_pages import pdf_of
from explorer.ui.dialogs.hand_in.report import Picture, Report
from explorer.ui.files import export

translate = QCoreApplication.translate

MOST_TOKENS = 2000
_WIDTH, _HEIGHT = 620, 780  # pixels that a picture has on the page at most
_LINES = 12  # to write on
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_STYLE = """
body { font-family: "DejaVu Sans", "Segoe UI", "Helvetica Neue", Arial, sans-serif;
  color: #1c2330; background: #ffffff; line-height: 1.45; }
h1 { font-size: 22pt; margin-bottom: 2px; }
h2 { font-size: 14pt; margin-top: 22px; color: #23407a; }
p.by { color: #566072; }
p.caption { color: #566072; font-size: 9pt; }
table { border-collapse: collapse; }
th { text-align: left; padding: 4px 18px 4px 0; color: #566072; font-weight: normal;
  vertical-align: top; white-space: nowrap; }
td { padding: 4px 18px 4px 0; vertical-align: top; }
.tokens { font-family: "DejaVu Sans Mono", Consolas, monospace; font-size: 10pt; }
.prompt { background-color: #e8eefb; }
.generated { background-color: #dff3e4; }
.forced { background-color: #fbe6cf; }
.padding { background-color: #e6e6e6; color: #5d6470; }
"""
_ON_SCREEN = """
body { max-width: 780px; margin: 24px auto; padding: 0 20px; }
img { max-width: 100%; height: auto; border: 1px solid #d4d9e2; }
.text { white-space: pre-wrap; overflow-wrap: anywhere; }
.tokens span { padding: 1px 4px; border-radius: 4px; display: inline-block; margin: 1px; }
.line { border-bottom: 1px solid #9aa3b2; height: 30px; }
.keep p { margin: 10px 0 4px; }
@media print { body { margin: 0; } .keep { break-inside: avoid; } }
"""


def html(report: Report) -> bytes:
    """The whole report in one file, pictures inside, UTF-8."""
    head = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{_text(report.title)}</title><style>{_STYLE}{_ON_SCREEN}</style></head><body>"
    )
    line = '<div class="line"></div>'
    return "\n".join([head, *_body(report, line), "</body></html>\n"]).encode("utf-8", "replace")


def pdf(report: Report) -> bytes:
    """The same as pages of the paper size that is usual here."""
    document = QTextDocument()
    document.setDefaultFont(QFont("DejaVu Sans", 10))
    document.setDefaultStyleSheet(_STYLE)
    line = "<p>&nbsp;</p><hr>"
    document.setHtml("\n".join(_body(report, line)))
    return pdf_of(document, report.title)


def _body(report: Report, line: str) -> Iterator[str]:
    yield f"<h1>{_text(report.title)}</h1>"
    when = QDate(report.day.year, report.day.month, report.day.day)
    day = QLocale().toString(when, QLocale.FormatType.LongFormat)
    yield f'<p class="by">{_text(" · ".join(filter(None, [report.author, day])))}</p>'
    if report.notes.strip():
        yield _heading(translate("Report", "Notes"))
        yield _lines(report.notes)
    yield _heading(translate("Report", "Prompt and text"))
    yield _lines(report.prompt)
    if report.generated:
        words = translate("Report", "Generated:")
        yield f"<p><b>{_text(words)}</b></p>"
        yield _lines(report.generated)
    yield _heading(translate("Report", "Tokens"))
    yield from _tokens(report.tokens)
    yield _heading(translate("Report", "Model and settings"))
    yield _table(report.facts)
    if report.answers:
        yield _heading(translate("Report", "Answers"))
        yield from _answers(report)
    if report.pictures:
        yield _heading(translate("Report", "Pictures"))
        for picture in report.pictures:
            yield _figure(picture)
    if report.room:
        yield _heading(translate("Report", "Room for more"))
        yield line * _LINES


def _text(text: str) -> str:
    """Any text as letters of the page; what would act on it is a mark."""
    return escape(printable(text, keep="\n"))


def _heading(words: str) -> str:
    return f"<h2>{_text(words)}</h2>"


def _lines(text: str) -> str:
    return f'<p class="text">{_text(text).replace(chr(10), "<br>")}</p>'


def _tokens(tokens: tuple[tuple[str, str], ...]) -> Iterator[str]:
    shown = (
        f'<span class="{escape(origin)}">{_text(text)}</span>'
        for text, origin in tokens[:MOST_TOKENS]
    )
    yield f'<p class="tokens">{" ".join(shown)}</p>'
    origins = {origin for _, origin in tokens}
    names = {
        "prompt": translate("Report", "prompt"),
        "generated": translate("Report", "generated"),
        "forced": translate("Report", "forced by you"),
        "padding": translate("Report", "padding"),
    }
    legend = (
        f'<span class="{origin}">{_text(name)}</span>'
        for origin, name in names.items()
        if origin in origins
    )
    yield f'<p class="tokens">{" ".join(legend)}</p>'
    if len(tokens) > MOST_TOKENS:
        words = translate("Report", "The first {0} of {1} tokens are shown.")
        yield f"<p>{_text(words.format(f'{MOST_TOKENS:,}', f'{len(tokens):,}'))}</p>"


def _table(rows: Iterable[tuple[str, str]]) -> str:
    cells = (f"<tr><th>{_text(name)}</th><td>{_text(value)}</td></tr>" for name, value in rows)
    return f"<table>{''.join(cells)}</table>"


def _answers(report: Report) -> Iterator[str]:
    for number, answer in enumerate(report.answers, start=1):
        rows = [
            (translate("Report", "Predicted"), answer.predicted),
            (translate("Report", "Measured"), answer.measured),
        ]
        asked = f"<p><b>{number}. {_text(answer.question)}</b></p>"
        yield f'<div class="keep">{asked}{_table(rows)}</div>'


def _figure(picture: Picture) -> str:
    data = base64.b64encode(export.png(picture.image)).decode("ascii")
    size = picture.image.deviceIndependentSize()
    wide = round(min(size.width(), _WIDTH, size.width() * _HEIGHT / max(1, size.height())))
    return (
        f'<div class="keep"><h3>{_text(picture.title)}</h3>'
        f'<p><img width="{wide}" alt="{_text(picture.caption)}" '
        f'src="data:image/png;base64,{data}"></p>'
        f'<p class="caption">{_text(picture.caption)}</p></div>'
    )
