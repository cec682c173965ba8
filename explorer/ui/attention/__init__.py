"""What the attention panel is made of: what is asked for, how it is worked out, how it is shown."""
