"""What a fitted model answers: recommendations, explanations, similar items, exported vectors."""
