"""VariableTracker, slots, the Tracer protocol and the tables that declarations enter."""
