"""Runs in Python of one's own: a script or notebook that repeats one, and a face to read one."""
