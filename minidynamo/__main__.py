"""``python -m minidynamo``: explain a script, print the registries, list bytecode."""
from __future__ import annotations

import sys

from minidynamo.api import explain
from minidynamo.tools.command import main

sys.exit(main(sys.argv[1:], explain))
