"""The training lab: a reference decoder learns a task, one update at a time."""
