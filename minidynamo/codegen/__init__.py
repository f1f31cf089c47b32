"""Output code: run the graph, restore values, replay effects, leave by return or by a resume function."""
from minidynamo.codegen.output import emit
from minidynamo.codegen.plan import Plan, plan

__all__ = ["Plan", "emit", "plan"]
