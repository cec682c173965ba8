"""Widgets that paint themselves: maps, tokens and charts. They know no session and no panel."""
