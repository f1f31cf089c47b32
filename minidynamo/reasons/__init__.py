"""Why something was given up: the reasons, the places, the messages, the public exceptions."""
from minidynamo.reasons.catalog import *  # noqa: F403  (one name for each reason)
from minidynamo.reasons.reason import REASONS, BadReason, Category, Reason, Stop, render
from minidynamo.reasons.where import NOWHERE, Where

__all__ = ["NOWHERE", "REASONS", "BadReason", "Category", "Reason", "Stop", "Where", "render"]
