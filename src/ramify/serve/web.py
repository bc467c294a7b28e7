"""The web page: static files of the package, held in memory."""

from __future__ import annotations

from importlib import resources

from fastapi import APIRouter, Response

from ramify.serve.problems import Problem

_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def page_routes() -> APIRouter:
    """`/` and the files it names."""
    router = APIRouter(include_in_schema=False)
    folder = resources.files("ramify.serve").joinpath("page")
    files = {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}

    @router.get("/")
    async def index() -> Response:
        return _file("index.html", files)

    @router.get("/page/{name}")
    async def file(name: str) -> Response:
        return _file(name, files)

    return router


def _file(name: str, files: dict[str, bytes]) -> Response:
    if name not in files:
        raise Problem(404, f"the page has no file {name[:100]!r}")
    kind = _TYPES.get(name[name.rfind(".") :], "application/octet-stream")
    return Response(files[name], media_type=f"{kind}; charset=utf-8" if kind.startswith("text") else kind)
