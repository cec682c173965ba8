"""Pure functions (trace, selection, settings) -> arrays ready to draw.  numpy only."""
