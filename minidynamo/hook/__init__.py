"""The adapter to torch's PEP 523 hook, and which frames it leaves alone."""
