"""What attention did: queries, keys and masks as the kernel received them, and clocks on parts.

Nothing here decides what is run: `passes` runs, this room records and leaves nothing behind.
"""
