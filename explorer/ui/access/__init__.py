"""How keyboard, wheel, tips and screen readers reach the widgets."""
