"""The program's look as one Qt stylesheet, made from a theme and a zoom."""

from __future__ import annotations

from explorer.ui.look.icons import arrow_folder
from explorer.ui.look.text_size import small_px
from explorer.ui.look.theme import Theme


def stylesheet(theme: Theme, scale: float) -> str:
    """Everything that a palette cannot say: rounded cards, calm controls, thin scroll bars.

    Widgets ask for a look by the dynamic property `look`: card, title, muted, error, primary,
    flat, pill; or are drawn as their class is.  Labels and tips are plain text, whatever they
    hold; only one that asks for `rich` is not, and it escapes what it is given.
    """
    # The arrows are files because a stylesheet takes no picture from memory.
    arrows = arrow_folder(theme.muted, theme.text, theme.on_accent)
    sizes = {f"px{n}": f"{max(1, round(n * scale))}px" for n in range(1, 25)}
    line = 2 if theme.name == "high_contrast" else 1
    knob = round(4 * scale) + 2 * round(5 * scale)  # height of a slider's handle
    values = {
        **{
            name: getattr(theme, name)
            for name in type(theme).__dataclass_fields__
            if isinstance(getattr(theme, name), str)
        },
        **sizes,
        "line": f"{line}px",
        # Qt draws corners that are rounder than half of the whole as square ones.
        "half_knob": f"{knob // 2}px",
        "half_box": f"{(round(14 * scale) + 2 * line) // 2}px",
        "title_size": f"{round(14 * scale)}px",
        "heading_size": f"{round(17 * scale)}px",
        "small_size": f"{small_px(scale, 12)}px",
        "three_lines": f"{round(56 * scale)}px",  # with the margins of a document
        "arrows": arrows,
    }
    sheet = _SHEET
    for name in sorted(values, key=len, reverse=True):
        sheet = sheet.replace(f"@{name}@", values[name])
    return sheet


_SHEET = """
QToolTip {
    background: @raised@; color: @text@; border: 1px solid @strong_border@;
    border-radius: @px4@; padding: @px4@ @px6@;
}
QMainWindow, QDialog { background: @window@; }
QMainWindow::separator { background: transparent; width: @px6@; height: @px6@; }
QMainWindow::separator:hover { background: @accent@; }
QSplitter::handle { background: transparent; }
QSplitter::handle:hover { background: @selection@; }
QSplitter::handle:horizontal { width: @px7@; }
QSplitter::handle:vertical { height: @px7@; }

*[look="card"] { background: @card@; border: @line@ solid @border@; border-radius: @px8@; }
*[look="side"], *[look="acting-side"] {
    background: @card@; border: @line@ solid @border@; border-radius: @px6@;
}
*[look="acting-side"] { border: @line@ solid @accent@; border-bottom: @px2@ solid @accent@; }
*[look="bar"] { background: @card@; border: none; border-bottom: @line@ solid @border@; }
QLabel { background: transparent; }
/* Qt takes text that looks like HTML for HTML, and most texts may hold a token or a name. */
QLabel, QToolTip { qproperty-textFormat: PlainText; }
QLabel[look="rich"] { qproperty-textFormat: RichText; }
QLabel[look="title"] { font-size: @title_size@; font-weight: 600; color: @text@; }
QLabel[look="heading"] { font-size: @heading_size@; font-weight: 600; color: @text@; }
QLabel[look="muted"] { color: @muted@; }
QLabel[look="warning"] { color: @warning@; font-weight: bold; }
QLabel[look="small"] { color: @muted@; font-size: @small_size@; }
QLabel[look="error"] { color: @danger@; }
*[look="error-card"] {
    background: @danger_soft@; color: @text@; border: 1px solid @danger@; border-radius: @px6@;
}
QLabel[look="pill"] {
    background: @selection@; color: @on_selection@; border-radius: @px8@; padding: @px1@ @px7@;
}

*[look="warning-card"] {
    background: @card@; color: @text@; border: 1px solid @warning@; border-radius: @px6@;
}
*[look="term-card"] {
    background: @raised@; color: @text@; border: @line@ solid @strong_border@;
    border-radius: @px8@;
}
QFrame[look="line"] { color: @border@; }

QPushButton, QToolButton {
    background: @raised@; color: @text@; border: @line@ solid @strong_border@; border-radius: @px6@;
    padding: @px4@ @px10@; min-height: @px18@;
}
QToolButton { padding: @px4@ @px6@; }
*[look="error-card"] QPushButton, *[look="warning-card"] QPushButton,
*[look="error-card"] QToolButton, *[look="warning-card"] QToolButton {
    padding: @px1@ @px8@; min-height: @px16@;
}
QPushButton:hover, QToolButton:hover { background: @hover@; border-color: @text@; }
QPushButton:pressed, QToolButton:pressed { background: @pressed@; }
QPushButton:checked, QToolButton:checked {
    background: @selection@; color: @on_selection@; border-color: @accent@;
}
QPushButton:disabled, QToolButton:disabled {
    color: @disabled@; background: transparent; border-color: @off@;
}
QPushButton[look="primary"], QToolButton[look="primary"] {
    background: @accent@; color: @on_accent@; border-color: @accent@; font-weight: 600;
}
QPushButton[look="primary"]:hover, QToolButton[look="primary"]:hover {
    background: @accent_hover@; border-color: @accent_hover@;
}
QPushButton[look="primary"]:disabled, QToolButton[look="primary"]:disabled {
    background: @off@; color: @disabled@; border-color: @off@;
}
QPushButton[look="choice"] { text-align: left; }
QPushButton[look="flat"], QToolButton[look="flat"] {
    background: transparent; border-color: transparent;
}
QPushButton[look="flat"]:hover, QToolButton[look="flat"]:hover { background: @hover@; }
QPushButton[look="flat"]:checked, QToolButton[look="flat"]:checked { background: @selection@; }
QToolButton[look="title-button"] {
    background: transparent; border: none; color: @muted@; padding: 0; min-height: @px20@;
    min-width: @px22@;
}
QToolButton[look="title-button"]:hover { background: @hover@; color: @text@; }
QToolButton::menu-indicator { image: none; }
QToolButton[popupMode="2"], QToolButton[popupMode="1"] { padding-right: @px14@; }
QToolButton[popupMode="2"]::menu-indicator {
    image: url(@arrows@/down.svg); width: @px8@; height: @px8@;
    subcontrol-position: right center; right: @px4@;
}

QLineEdit, QPlainTextEdit, QTextEdit, QAbstractSpinBox, QComboBox {
    background: @field@; color: @text@; border: @line@ solid @strong_border@; border-radius: @px6@;
    padding: @px3@ @px6@; selection-background-color: @accent@;
    selection-color: @on_accent@; min-height: @px18@; placeholder-text-color: @muted@;
}
QPlainTextEdit[look="prompt"] { min-height: @three_lines@; }
QLineEdit:hover, QPlainTextEdit:hover, QTextEdit:hover, QAbstractSpinBox:hover,
QComboBox:hover { border-color: @text@; }
QLineEdit:disabled, QPlainTextEdit:disabled, QTextEdit:disabled, QAbstractSpinBox:disabled,
QComboBox:disabled { color: @disabled@; background: transparent; border-color: @off@; }
QComboBox { background: @raised@; padding-right: @px2@; }
QComboBox::drop-down { border: none; width: @px18@; }
QComboBox::down-arrow { image: url(@arrows@/down.svg); width: @px9@; height: @px9@; }
QComboBox QAbstractItemView {
    background: @raised@; color: @text@; border: 1px solid @strong_border@; padding: @px3@;
    selection-background-color: @accent@; selection-color: @on_accent@; outline: none;
}
QComboBox QAbstractItemView::item { min-height: @px22@; padding: 0 @px6@; }
QAbstractSpinBox { padding-right: @px18@; }
QAbstractSpinBox[look="wrong"] { color: @danger@; border-color: @danger@; }
QAbstractSpinBox QLineEdit {
    border: none; background: transparent; padding: 0 0 0 @px4@;
}
QAbstractSpinBox::up-button {
    subcontrol-origin: border; subcontrol-position: top right; width: @px16@; border: none;
    border-top-right-radius: @px5@; margin: 1px 1px 0 0;
}
QAbstractSpinBox::down-button {
    subcontrol-origin: border; subcontrol-position: bottom right; width: @px16@; border: none;
    border-bottom-right-radius: @px5@; margin: 0 1px 1px 0;
}
QAbstractSpinBox::up-button:hover, QAbstractSpinBox::down-button:hover { background: @pressed@; }
QAbstractSpinBox::up-arrow {
    image: url(@arrows@/up.svg); width: @px7@; height: @px7@;
}
QAbstractSpinBox::down-arrow {
    image: url(@arrows@/down.svg); width: @px7@; height: @px7@;
}

QCheckBox, QRadioButton { spacing: @px6@; background: transparent; }
QCheckBox:disabled, QRadioButton:disabled { color: @disabled@; }
QCheckBox::indicator, QRadioButton::indicator, QListWidget::indicator {
    width: @px14@; height: @px14@; border: @line@ solid @strong_border@; background: @field@;
}
QCheckBox::indicator, QListWidget::indicator { border-radius: @px4@; }
QRadioButton::indicator { border-radius: @half_box@; }
QCheckBox::indicator:hover, QRadioButton::indicator:hover { border-color: @accent@; }
QCheckBox::indicator:checked, QListWidget::indicator:checked {
    background: @accent@; border-color: @accent@; image: url(@arrows@/check.svg);
}
QRadioButton::indicator:checked {
    background: @accent@; border-color: @accent@; image: url(@arrows@/dot.svg);
}
QCheckBox::indicator:disabled, QRadioButton::indicator:disabled {
    border-color: @off@; background: @off@;
}

QSlider { min-height: @px20@; }
QSlider::groove:horizontal { height: @px4@; border-radius: @px2@; background: @strong_border@; }
QSlider::sub-page:horizontal { background: @accent@; border-radius: @px2@; }
QSlider::handle:horizontal {
    width: @px12@; margin: -@px5@ 0; border-radius: @half_knob@; background: @raised@;
    border: 2px solid @accent@;
}
QSlider::handle:horizontal:hover { background: @selection@; }
QSlider::groove:horizontal:disabled, QSlider::sub-page:horizontal:disabled {
    background: @off@;
}
QSlider::handle:horizontal:disabled { border-color: @off@; background: @window@; }

QProgressBar {
    background: @field@; border: 1px solid @strong_border@; border-radius: @px3@; min-height: @px6@;
    max-height: @px6@; text-align: center; color: transparent;
}
QProgressBar::chunk { background: @accent@; border-radius: @px3@; }

QMenuBar { background: @window@; padding: 0; }
QMenuBar::item { padding: @px4@ @px9@; background: transparent; border-radius: @px4@; }
QMenuBar::item:selected { background: @accent@; color: @on_accent@; }
QMenu { background: @raised@; color: @text@; border: 1px solid @strong_border@; padding: @px4@; }
QMenu::item { padding: @px5@ @px24@ @px5@ @px24@; border-radius: @px4@; }
QMenu::item:selected { background: @accent@; color: @on_accent@; }
QMenu::item:disabled { color: @disabled@; background: transparent; }
QMenu::separator { height: 1px; background: @border@; margin: @px4@ @px8@; }
QMenu::icon { padding-left: @px6@; }
QMenu::indicator { width: @px12@; height: @px12@; left: @px6@; }
QMenu::indicator:checked { image: url(@arrows@/check-text.svg); }

QToolBar { background: @window@; border: none; spacing: @px4@; padding: @px3@ @px6@; }
QToolBar::separator { background: @border@; width: 1px; margin: @px4@ @px4@; }
QStatusBar { background: @window@; color: @muted@; }
QStatusBar::item { border: none; }

QDockWidget { titlebar-close-icon: none; titlebar-normal-icon: none; font-weight: 600; }
QDockWidget::title {
    background: @card@; border: @line@ solid @border@; border-bottom: none;
    border-top-left-radius: @px8@; border-top-right-radius: @px8@;
    padding: @px5@ @px10@; text-align: left;
}
QTabWidget::pane { border: @line@ solid @border@; border-radius: @px6@; background: @card@; }
QTabBar { qproperty-drawBase: 0; background: transparent; }
QTabBar::tab {
    background: transparent; color: @muted@; padding: @px5@ @px8@; margin-right: @px2@;
    border: none; border-bottom: 2px solid transparent;
}
QTabBar::tab:hover { color: @text@; background: @hover@; border-radius: @px4@; }
QTabBar::tab:selected { color: @text@; font-weight: 600; border-bottom: 2px solid @accent@; }
QTabWidget QListView, QTabWidget QTreeView { border: none; }
QGroupBox {
    border: none; margin-top: @px20@; padding-top: @px2@; font-weight: 600;
}
QGroupBox::title { subcontrol-origin: margin; left: 0; color: @text@; }

QAbstractScrollArea, QAbstractScrollArea::corner { background: transparent; border: none; }
QPlainTextEdit, QTextEdit { background: @field@; border: @line@ solid @strong_border@; }
QListView, QTreeView, QTableView {
    background: @field@; alternate-background-color: @card@; border: @line@ solid @strong_border@;
    border-radius: @px6@; selection-background-color: @selection@;
    selection-color: @on_selection@; outline: none; gridline-color: @grid@;
}
QListView::item, QTreeView::item { padding: @px3@ @px4@; border-radius: @px4@; }
QListView::item:hover, QTreeView::item:hover { background: @hover@; }
QListView::item:selected, QListView::item:selected:!active, QTreeView::item:selected,
QTreeView::item:selected:!active {
    background: @selection@; color: @on_selection@;
}
QListView::item:focus, QTreeView::item:focus, QTableView::item:focus {
    background: @accent@; color: @on_accent@;
}
QHeaderView::section {
    background: @card@; color: @muted@; border: none; border-bottom: 1px solid @border@;
    padding: @px4@ @px6@;
}
QScrollBar { background: transparent; border: none; }
QScrollBar:vertical { width: @px10@; }
QScrollBar:horizontal { height: @px10@; }
QScrollBar::handle { background: @strong_border@; border-radius: @px3@; margin: @px2@; }
QScrollBar::handle:hover { background: @accent@; }
QScrollBar::handle:vertical { min-height: @px24@; }
QScrollBar::handle:horizontal { min-width: @px24@; }
QScrollBar::add-line, QScrollBar::sub-line { width: 0; height: 0; }
QScrollBar::add-page, QScrollBar::sub-page { background: transparent; }
"""
