"""Numbers to pictures without Qt: colour maps and scales, what is seen of a large map, pooling."""
