"""How tokens and sentences are written: nothing invisible, nothing that acts on what shows it."""
