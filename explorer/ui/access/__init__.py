"""How keyboard, tips and screen readers reach the widgets."""
