"""From scored trials to numbers. Pure."""
