"""One layer at one token, stage by stage: its modules, its attention kernel, its experts."""
