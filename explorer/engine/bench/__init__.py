"""The ratios that matter, timed here and now: recording against not recording, in one process."""
