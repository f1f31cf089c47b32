"""The tape of ops, fake values, shape symbols, and their lowering to an fx.GraphModule."""
