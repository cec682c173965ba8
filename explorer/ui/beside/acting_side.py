"""The side that keys, menus and the toolbar are about."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtWidgets import QWidget

from explorer.session.session import Session
from explorer.ui.files.session_files import SessionFiles
from explorer.ui.frame.docks import Docks
from explorer.ui.frame.token_area import TokenArea
from explorer.ui.inputs.prompt import PromptBox
from explorer.ui.inputs.sampling_controls import SamplingControls


@dataclass(frozen=True, slots=True, eq=False)
class ActingSide:
    """One of the two sides, or the only one."""

    session: Session
    docks: Docks
    files: SessionFiles
    sequence: TokenArea
    prompt: PromptBox
    sampling: SamplingControls
    pane: QWidget  # its tokens and panels
    panels: QWidget  # without the tokens
    settings: QWidget  # its column
