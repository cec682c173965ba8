"""Work off the window's thread, and the way back into it."""
