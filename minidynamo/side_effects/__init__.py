"""Side effects: what a trace changed of the user's objects, as plain data for explain, logs and metrics."""
