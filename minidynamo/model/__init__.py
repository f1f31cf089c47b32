"""VariableTracker, slots, what they ask of the tracer, and the tables that declarations enter."""
