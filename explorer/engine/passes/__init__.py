"""Forward passes: how tokens are laid out, masked, cached, chunked and run.

Begin with `generate`: the whole loop on one page.  `layout` makes masks and positions for
everybody; `runner` is the model that it runs on.
"""
