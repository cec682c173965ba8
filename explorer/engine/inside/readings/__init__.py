"""What is made of logits and streams, whichever library computed them; numpy alone, no torch."""
