"""What a run may do otherwise than its model, as data and as lines of text."""
