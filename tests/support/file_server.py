"""A real HTTP server on loopback that can do what real ones do: ranges, tags, errors, broken connections."""

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Asked:
    """One request, and how many bytes of the file went out for it."""

    path: str
    range: str | None
    if_range: str | None
    sent: int = 0


@dataclass
class FileServer:
    """What is served and how; `asked` tells what was asked for."""

    address: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    knows_ranges: bool = True
    sends: tuple[str, ...] = ("ETag", "Last-Modified", "Content-Length")
    breaks: list[int] = field(default_factory=list)
    """After so many bytes the connection of the next request breaks, then of the one after it, and so on."""
    statuses: dict[str, int] = field(default_factory=dict)
    wrong_start: bool = False
    chunked: bool = False
    length: str | None = None
    """Sent as Content-Length in place of the right one."""

    def paths(self) -> list[str]:
        """What was asked for, in order."""
        return [one.path for one in self.asked]


@contextmanager
def serving(server: FileServer | None = None) -> Iterator[FileServer]:
    """Serves until the block ends."""
    files = server or FileServer()

    class Handler(_Handler):
        served = files

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    files.address = f"http://127.0.0.1:{http.server_address[1]}"
    try:
        yield files
    finally:
        http.shutdown()
        thread.join()
        http.server_close()


class _Handler(BaseHTTPRequestHandler):
    served: FileServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self.close_connection = True
        served, path = self.served, self.path.lstrip("/")
        asked = Asked(path, self.headers["Range"], self.headers["If-Range"])
        served.asked.append(asked)
        status = served.statuses.get(path, 200 if path in served.files else 404)
        if status != 200:
            self.send_error(status)
            return
        self._send(served.files[path], asked)

    def _send(self, content: bytes, asked: Asked) -> None:
        served = self.served
        tags = {
            "ETag": f'"{hashlib.sha256(content).hexdigest()[:12]}"',
            "Last-Modified": "Mon, 17 Oct 2016 08:00:00 GMT",
        }
        same = asked.if_range is None or asked.if_range == tags[served.sends[0]]
        start = (
            int(asked.range.removeprefix("bytes=").rstrip("-")) if asked.range and served.knows_ranges and same else 0
        )
        if start >= len(content) > 0:
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(content)}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(206 if start else 200)
        if start:
            first = start - 1 if served.wrong_start else start
            self.send_header("Content-Range", f"bytes {first}-{len(content) - 1}/{len(content)}")
        headers = tags | {"Content-Length": served.length or str(len(content) - start)}
        for name in served.sends:
            self.send_header(name, headers[name])
        if served.chunked:
            self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        stop = served.breaks.pop(0) if served.breaks else None
        self._write(content[start:], stop, asked)

    def _write(self, body: bytes, stop: int | None, asked: Asked) -> None:
        sent = body if stop is None else body[:stop]
        asked.sent = len(sent)
        if self.served.chunked:
            self.wfile.write(f"{len(body):x}\r\n".encode() + sent + (b"\r\n0\r\n\r\n" if stop is None else b""))
        else:
            self.wfile.write(sent)
        self.wfile.flush()
