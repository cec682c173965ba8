"""What lens and sweep make of logits, whichever library computed them; numpy alone, no torch."""
