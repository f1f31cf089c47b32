"""``docs/reasons.md``, written from the catalogue: ``python -m minidynamo reasons > docs/reasons.md``."""
from __future__ import annotations

from minidynamo.reasons import REASONS, Reason

HEAD = """# Break reasons

Written from `minidynamo/reasons/catalog.py` by `python -m minidynamo reasons`; do not edit.
Each place where tracing ends early names one of these. Words in braces are filled in at the place.
"""


def page() -> str:
    """The whole page, by category and id."""
    groups: dict[str, list[Reason]] = {}
    for reason in sorted(REASONS.values(), key=lambda r: r.id):
        groups.setdefault(reason.category, []).append(reason)
    parts = [HEAD]
    for category, members in groups.items():
        parts.append(f"\n## {category.capitalize()}\n")
        parts.extend(_entry(reason) for reason in members)
    return "".join(parts)


def _entry(reason: Reason) -> str:
    advice = [f"- hint: {hint}" for hint in reason.hints] or [f"- no hint: {reason.no_hint}"]
    return f"\n### {reason.id} {reason.title}\n\n{reason.explain}\n\n" + "\n".join(advice) + "\n"
