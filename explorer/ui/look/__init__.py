"""Colours, style sheet, icons, text size; light, dark and high contrast."""
