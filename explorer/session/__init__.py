"""The one mutable owner of state.  No Qt, no torch; called from one thread only."""
