"""The second program: re-checks a run from its evidence alone, and shares no code with what made it."""
