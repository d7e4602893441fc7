"""One summary of a comparison, and the formats it is written in."""
