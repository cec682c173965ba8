"""A text document as numbered pages of a PDF, with no heading left alone at the foot of one."""

from __future__ import annotations

from PySide6.QtCore import QBuffer, QIODevice, QLocale, QMarginsF, QRectF, QSizeF, Qt
from PySide6.QtGui import (
    QAbstractTextDocumentLayout,
    QColor,
    QFont,
    QPageLayout,
    QPageSize,
    QPainter,
    QPalette,
    QPdfWriter,
    QTextCursor,
    QTextDocument,
    QTextFormat,
)

_MARGIN_MM = 20
_FOOT_INCHES = 0.4  # for the number of the page


def pdf_of(document: QTextDocument, title: str) -> bytes:
    """The document on the paper size that is usual here, dark on white whatever the theme."""
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    writer = QPdfWriter(buffer)
    writer.setTitle(title)
    imperial = QLocale.system().measurementSystem() == QLocale.MeasurementSystem.ImperialUSSystem
    paper = QPageSize.PageSizeId.Letter if imperial else QPageSize.PageSizeId.A4
    writer.setPageSize(QPageSize(paper))
    edge = QMarginsF(_MARGIN_MM, _MARGIN_MM, _MARGIN_MM, _MARGIN_MM)
    writer.setPageMargins(edge, QPageLayout.Unit.Millimeter)
    foot = round(_FOOT_INCHES * writer.logicalDpiY())
    page = QSizeF(writer.width(), writer.height() - foot)
    document.documentLayout().setPaintDevice(writer)
    document.setDocumentMargin(0)
    document.setPageSize(page)
    _keep_headings(document, page.height())
    painter = QPainter(writer)
    painter.setFont(QFont(document.defaultFont(), writer))
    for number in range(document.pageCount()):
        if number:
            writer.newPage()
        _draw_page(document, painter, number, page)
        place = QRectF(0, page.height(), page.width(), foot)
        painter.drawText(
            place, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignBottom, str(number + 1)
        )
    painter.end()
    return bytes(buffer.data().data())


def _draw_page(document: QTextDocument, painter: QPainter, number: int, page: QSizeF) -> None:
    context = QAbstractTextDocumentLayout.PaintContext()
    palette = QPalette(context.palette)
    palette.setColor(QPalette.ColorRole.Text, QColor("black"))
    context.palette = palette
    context.clip = QRectF(0, number * page.height(), page.width(), page.height())
    painter.save()
    painter.translate(0, -number * page.height())
    painter.setClipRect(context.clip)
    document.documentLayout().draw(painter, context)
    painter.restore()


def _keep_headings(document: QTextDocument, height: float) -> None:
    """Headings, one or more together, whose text is on the next page begin that page."""
    layout = document.documentLayout()
    block = document.begin()
    while block.isValid():
        first = block
        while block.isValid() and block.blockFormat().headingLevel():
            block = block.next()
        if block == first:
            block = block.next()
        elif block.isValid():
            here = layout.blockBoundingRect(first).top()
            text_ends = layout.blockBoundingRect(block).bottom() - 1
            if here // height < text_ends // height:
                look = first.blockFormat()
                look.setPageBreakPolicy(QTextFormat.PageBreakFlag.PageBreak_AlwaysBefore)
                QTextCursor(first).setBlockFormat(look)
    # Laid out from the moved headings alone, some of what follows would not be painted.
    document.markContentsDirty(0, document.characterCount())
