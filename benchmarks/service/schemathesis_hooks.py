"""Teach Schemathesis to send NDJSON:  SCHEMATHESIS_HOOKS=benchmarks/service/schemathesis_hooks.py."""

from __future__ import annotations

import json
from typing import Any

import schemathesis


@schemathesis.serializer("application/x-ndjson")
def ndjson(_: Any, value: Any) -> bytes:
    """Any text is sent as it is, so that lines may be no JSON at all."""
    return value.encode("utf-8", "replace") if isinstance(value, str) else json.dumps(value).encode()
