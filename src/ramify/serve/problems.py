"""Errors of the service as problem details (RFC 9457): what is wrong, where, and what to do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

TITLES = {
    400: "Bad request",
    401: "Key required",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    408: "Request too slow",
    409: "Conflict",
    411: "Length required",
    413: "Request too large",
    415: "Unsupported media type",
    421: "Wrong host",
    422: "Invalid request",
    429: "Too many requests",
    431: "Headers too large",
    500: "Internal error",
    503: "Busy",
    507: "Disk full",
}
MEDIA_TYPE = "application/problem+json"


class Problem(Exception):
    """An error that the client sees: `detail` says what and what to do, `where` the part of the request."""

    def __init__(self, status: int, detail: str, *, where: str | None = None, retry_after: int | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.where = where
        self.retry_after = retry_after

    def content(self) -> dict[str, Any]:
        """The body of the answer."""
        content: dict[str, Any] = {
            "type": "about:blank",
            "title": TITLES.get(self.status, "Error"),
            "status": self.status,
            "detail": self.detail,
        }
        if self.where is not None:
            content["where"] = self.where
        if self.retry_after is not None:
            content["retry_after"] = self.retry_after
        return content

    def body(self) -> bytes:
        return json.dumps(self.content()).encode()

    def headers(self) -> dict[str, str]:
        headers = {} if self.retry_after is None else {"retry-after": str(self.retry_after)}
        if self.status == 401:
            headers["www-authenticate"] = "Bearer"
        return headers

    @classmethod
    def from_content(cls, content: Mapping[str, Any]) -> Problem:
        """The problem that another process described."""
        return cls(
            content["status"], content["detail"], where=content.get("where"), retry_after=content.get("retry_after")
        )
