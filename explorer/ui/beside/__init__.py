"""A second run beside the window's own: its pane and settings, the line between both sides, and
what differs.

Which tokens, layers and heads belong together is worked out in `figures/comparing` and
`session/linked`; here it is shown.
"""
