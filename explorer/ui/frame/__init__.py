"""What surrounds the panels: docks, top bar, status bar, notices, the tokens of the run,
presenter mode."""
