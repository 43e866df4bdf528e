"""The corpus of the embedded model: generated text only, seeded, no outside data."""
