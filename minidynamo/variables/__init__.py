"""Value kinds: one file per family, with methods, builtins and effects beside them."""
