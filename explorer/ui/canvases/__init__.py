"""Widgets that paint themselves: maps, tokens and charts, all on `canvas`. They know no session."""
