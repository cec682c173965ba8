"""The frame that every panel shares."""
