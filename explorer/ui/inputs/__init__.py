"""What the user types and sets on the left: prompt, sampling, stop rules."""
