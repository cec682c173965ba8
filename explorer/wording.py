"""How figures are worded on screen and in the commands' text: one function for each kind.

JSON, CSV and clipboard tables carry the figures themselves, never these words.
"""

from __future__ import annotations

import signal
from math import ceil, isinf, isnan, log, log10
from typing import Literal

_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_SMALLEST = 1e-6  # below this share a per cent would be a row of zeros

Unit = Literal["nats", "bits"]
_units: list[Unit] = ["nats"]  # one for the whole program, as a locale is


def use_unit(unit: Unit) -> None:
    """Entropies and surprisals are worded in this unit from now on."""
    _units[:] = [unit]


def unit() -> Unit:
    """The unit of entropies and surprisals, by its name."""
    return _units[0]


def in_unit(nats: float) -> float:
    """An entropy or a surprisal, in the unit of now."""
    return nats if unit() == "nats" else nats / log(2)


def information(nats: float, form: str = ".3g") -> str:
    """An entropy or a surprisal with its unit: "1.48 nats", or "2.14 bits"."""
    return f"{'∞' if isinf(nats) else format(in_unit(nats), form)} {unit()}"


def signed(value: float, form: str) -> str:
    """A figure with its sign, in a format such as ".2f"; what rounds to 0 has no minus."""
    return format(value, f"+z{form}")


def percent(share: float) -> str:
    """A share for charts and sentences: "92.5 %", "3.4 %", "0.12 %", "< 0.1 %", "> 99.9 %".

    One decimal from 10 %, two digits below.  Only an exact 0 reads as 0 and only an exact 1 as 100.
    """
    ends = _end(share)
    if ends:
        return ends
    value = 100 * share
    if value < 0.1:
        return "< 0.1 %"
    if value >= 99.95:
        return "> 99.9 %"
    if value >= 9.95:
        return f"{value:.1f} %"
    return f"{value:.{2 if value < 0.995 else 1}f} %"


def exact_percent(share: float) -> str:
    """The same share for tips and tables: three digits, and more where it nearly is 100 %.

    "77.1 %", "0.0123 %", "99.9990 %"; what is too small for a per cent is a bare probability:
    "4.56×10⁻¹¹".
    """
    ends = _end(share)
    if ends:
        return ends
    value = 100 * share
    if share < _SMALLEST:
        mantissa, exponent = f"{share:.2e}".split("e")
        return f"{mantissa}×10{str(int(exponent)).translate(_SUPERSCRIPT)}"
    if value >= 99.95:
        digits = max(2, ceil(-log10((1 - share) * 100)))
        return f"{min(value, 100 - 10.0**-digits):.{digits}f} %"
    digits = 2 - int(f"{value:.2e}".split("e")[1])  # as rounded: 9.996 has the digits of 10.0
    return f"{value:.{max(digits, 0)}f} %"


def round_percent(share: float) -> str:
    """A share that is round by itself, such as a tick of an axis, or how far a job is: "25 %"."""
    return f"{float(f'{100 * share:.3g}'):g} %"


def whole_percent(share: float) -> str:
    """A share in a name that is read at a glance, such as "Q8_0 63 %"."""
    return f"{100 * share:.0f} %"


def progress_percent(share: float) -> str:
    """How far a job is, in whole per cents; 100 only when it is done."""
    return f"{min(int(100 * share), 100)} %"


def bytes_text(count: int) -> str:
    """Bytes in full and, from 1 KiB on, in the nearest binary unit: "552,960 bytes (540 KiB)"."""
    whole = f"{count:,} {'byte' if count == 1 else 'bytes'}"
    return whole if count < 1024 else f"{whole} ({short_bytes(count)})"


def short_bytes(count: float) -> str:
    """Bytes in the nearest binary unit, three significant digits: "540 KiB"."""
    value = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if value < 1000 or unit == "GiB":
            break
        value /= 1024
    return f"{value:,.0f} {unit}" if value >= 100 or unit == "bytes" else f"{value:.3g} {unit}"


def ms_text(ms: float) -> str:
    """Milliseconds in three significant digits; seconds from ten thousand on."""
    if ms >= 10_000:
        return f"{ms / 1000:,.1f} s"
    return f"{ms:,.0f} ms" if ms >= 100 else f"{ms:.3g} ms"


def seconds_text(seconds: float) -> str:
    """An estimate in round figures: "40 s", "3 min"."""
    if seconds < 90:
        return f"{max(1, round(seconds, -1 if seconds >= 20 else 0)):.0f} s"
    return f"{seconds / 60:.0f} min"


def how_ended(code: int) -> str:
    """How a process that runs a model ended by itself, in brackets; empty for exit code 0."""
    if code in (-9, 137):
        return " (killed, possibly because it ran out of memory)"
    if hasattr(signal, "SIGBUS") and code == -signal.SIGBUS:
        return " (a model file was truncated while it was open)"
    if code < 0:
        return f" (signal {-code})"
    return f" (exit code {code})" if code else ""


def _end(share: float) -> str:
    if isnan(share):
        return "not a number"
    if share <= 0:
        return "0 %"
    return "100 %" if share >= 1 else ""
