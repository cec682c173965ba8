"""Forward passes: how tokens are laid out, masked, cached, chunked and run.

`layout` makes masks and positions for everybody; `runner` turns a request into steps.
"""
