"""Small data sets in exactly the official formats: archives as their owners pack them, and what is in them."""

import hashlib
import io
import zipfile
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest

from topnrank.data.datasets.registry import DATASETS

Row = tuple[int | str, int | str, float, int]

RATED: list[Row] = [
    (1, 122, 5.0, 838985046),
    (1, 185, 4.5, 838983525),
    (2, 122, 0.5, 868245777),
    (12, 11, 3.0, 1113765937),
]
WHOLE_STARS: list[Row] = [(user, item, float(int(rating) or 1), time) for user, item, rating, time in RATED]
TITLES = {
    11: "American President, The (1995)",
    73: "Misérables, Les (1995)",
    122: '"Great Performances" Cats (1998)',
    185: "Net, The (1995)",
}
"""The second is rated by nobody; there are commas, quotes and letters beyond ASCII."""
NO_LATIN = TITLES | {185: "Cidade de Deus – Ż (2002)"}
"""What only UTF-8 can write."""
GAMERS: list[Row] = [
    *(("A2HD75EMZR8QLN", f"B0000{10 + k}", 1.0 + k % 5, 1341792000 + 86400 * k) for k in range(9)),
    ("A2HD75EMZR8QLN", "0700099867", 1.0, 1341792000),
    *(("AB9S9279OZ3QO", f"B0000{10 + k}", 5.0, 1373155200) for k in range(9)),
]
"""One user with ten ratings, one with nine; an item id that begins with a zero."""
EVENTS = [
    (1433221332117, 257597, "view", 355908, ""),
    (1433224214164, 257597, "view", 355908, ""),
    (1433224244164, 257597, "addtocart", 355908, ""),
    (1433224344999, 257597, "transaction", 355908, 4000),
    (1433221999827, 111016, "view", 318965, ""),
]
"""The second view of the same item stays, the first goes."""


@dataclass(frozen=True)
class Official:
    """An archive as its owners publish it, and what must come out."""

    archive: str
    content: bytes
    rows: list[Row]
    titles: dict[int, str] | None

    def write(self, folder: Path) -> Path:
        """Puts the archive into a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / self.archive
        path.write_bytes(self.content)
        return path

    def unpack(self, folder: Path) -> None:
        """Unpacks the archive into a folder as a person would."""
        with zipfile.ZipFile(io.BytesIO(self.content)) as packed:
            packed.extractall(folder)

    @property
    def files(self) -> dict[str, bytes]:
        """What the owners' server has: the archive and, for MovieLens, the checksum as it is written there."""
        if not self.archive.startswith("ml-"):
            return {self.archive: self.content}
        digest = hashlib.md5(self.content).hexdigest()
        return {self.archive: self.content, f"{self.archive}.md5": f"MD5 ({self.archive}) = {digest}\n".encode()}


def without_known_checksums(patch: pytest.MonkeyPatch) -> None:
    """The archives of these tests are small ones: only the checksums beside them count."""
    for name, dataset in DATASETS.items():
        patch.setitem(DATASETS, name, replace(dataset, md5=None))  # type: ignore[arg-type]


def pack(members: dict[str, str | bytes]) -> bytes:
    """A zip archive; a name that ends in a slash is a folder."""
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in members.items():
            packed.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return memory.getvalue()


def lines(rows: list[Row], separator: str, end: str = "\n", header: str = "") -> str:
    """Rows as text; whole ratings are written as `g` does."""
    texts = [separator.join((str(user), str(item), f"{rating:g}", str(time))) for user, item, rating, time in rows]
    return "".join(text + end for text in ([header] if header else []) + texts)


def _ml_100k() -> Official:
    tail = "|01-Jan-1995||http://us.imdb.com/M/title-exact?x|" + "|".join("0" * 19)
    items = "".join(f"{item}|{title}{tail}\n" for item, title in TITLES.items())
    members = {
        "ml-100k/": "",
        "ml-100k/README": "SUMMARY & USAGE LICENSE\n",
        "ml-100k/u.data": lines(WHOLE_STARS, "\t"),
        "ml-100k/u.item": items.encode("latin-1"),
        "ml-100k/ua.base": "1\t1\t5\t874965758\n",
    }
    return Official("ml-100k.zip", pack(members), WHOLE_STARS, TITLES)


def _colons(name: str, folder: str, rows: list[Row], titles: dict[int, str], encoding: str) -> Official:
    movies = "".join(f"{item}::{title}::Comedy|Drama\n" for item, title in titles.items())
    members = {
        f"{folder}/": "",
        f"{folder}/movies.dat": movies.encode(encoding),
        f"{folder}/ratings.dat": lines(rows, "::"),
        f"{folder}/README": "...",
    }
    return Official(f"{name}.zip", pack(members), rows, titles)


def _commas(name: str, end: str) -> Official:
    quoted = {item: '"' + title.replace('"', '""') + '"' for item, title in NO_LATIN.items()}
    movies = "movieId,title,genres" + end + "".join(f"{k},{title},Comedy|Drama{end}" for k, title in quoted.items())
    members = {
        f"{name}/": "",
        f"{name}/tags.csv": f"userId,movieId,tag,timestamp{end}",
        f"{name}/ratings.csv": lines(RATED, ",", end, "userId,movieId,rating,timestamp"),
        f"{name}/movies.csv": movies.encode(),
    }
    return Official(f"{name}.zip", pack(members), RATED, NO_LATIN)


def _retail_rocket() -> Official:
    events = "timestamp,visitorid,event,itemid,transactionid\n" + "".join(",".join(map(str, e)) + "\n" for e in EVENTS)
    members = {"category_tree.csv": "categoryid,parentid\n1016,213\n", "events.csv": events}
    return Official("ecommerce-dataset.zip", pack(members), [], None)


@cache
def official() -> dict[str, Official]:
    """Every data set by its name."""
    games = lines(GAMERS, ",").encode()
    return {
        "ml-100k": _ml_100k(),
        "ml-1m": _colons("ml-1m", "ml-1m", WHOLE_STARS, TITLES, "latin-1"),
        "ml-10m": _colons("ml-10m", "ml-10M100K", RATED, NO_LATIN, "utf-8"),
        "ml-20m": _commas("ml-20m", "\n"),
        "ml-25m": _commas("ml-25m", "\n"),
        "ml-latest-small": _commas("ml-latest-small", "\r\n"),
        "amazon-video-games": Official("ratings_Video_Games.csv", games, GAMERS, None),
        "retail-rocket": _retail_rocket(),
    }
