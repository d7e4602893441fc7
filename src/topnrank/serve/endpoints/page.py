"""The page for people: static files of the package, with a strict content security policy."""

from pathlib import Path
from typing import Any

from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

FOLDER = Path(__file__).parents[1] / "page"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; "
    "manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".mjs": "text/javascript",
    ".svg": "image/svg+xml",
}


class Page(StaticFiles):
    """The files at /; they are asked for again with each visit, and mostly answered by 304."""

    def __init__(self) -> None:
        super().__init__(directory=FOLDER, html=True)

    async def get_response(self, path: str, scope: Scope) -> Response:
        """See the base class; /status is the file status.html."""
        if path == "status":
            path = "status.html"
        return await super().get_response(path, scope)

    def file_response(self, full_path: Any, *arguments: Any, **named: Any) -> Response:
        """A file with its type by the name, whatever the types of this machine say, and the policy."""
        response = super().file_response(full_path, *arguments, **named)
        kind = _TYPES.get(Path(full_path).suffix)
        if kind is not None:
            response.headers["content-type"] = kind if kind.startswith("image") else f"{kind}; charset=utf-8"
        response.headers["content-security-policy"] = POLICY
        response.headers["cache-control"] = "no-cache"
        return response
