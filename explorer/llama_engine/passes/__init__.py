"""Passes of llama.cpp over one sequence: run, recorded, and picked from.

Begin with `generate`: the whole loop on one page.  `context` calls llama.cpp, `watch` copies what
attention received while it runs, `records` makes the trace's records of it.
"""
