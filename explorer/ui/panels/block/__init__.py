"""The block panel: what one layer computes for one token, stage by stage."""
