"""Ground floor: the one registry class, the undo journal, configuration, text helpers. No torch."""
