"""Charts with two numeric axes, drawn by pyqtgraph: one base class, and what each kind adds to it.

`chart.Chart` is the widget: it shows a `marks.Figure`, is read with the mouse or the keys, zoomed,
moved and put back.  `column_chart.ColumnChart` makes figures of columns; `axis` has ticks and
units, `marks` what can be drawn, and `plot` alone imports pyqtgraph and sets its options.  That
import takes half a second: a chart makes its plot when it is first seen, and `warm_up` loads
pyqtgraph before that, once the window is on screen.  Maps, atlas, arcs, strips, trees and
token bars are painted by the files of the folder above, which are many times faster at it.
"""
