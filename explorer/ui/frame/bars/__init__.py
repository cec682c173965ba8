"""One notice of the line on top of the window, and what it says of branches."""
