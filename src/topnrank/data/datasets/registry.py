"""The public data sets: where their owners keep them, and how their files are written."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Literal, NamedTuple

_GROUPLENS = "https://files.grouplens.org/datasets/movielens/"
_RESEARCH = "research use only, no redistribution; cite Harper and Konstan 2015 (doi.org/10.1145/2827872)"


class Counts(NamedTuple):
    """Rows of a whole data set, and the users and items that occur in them."""

    rows: int
    users: int
    items: int


@dataclass(frozen=True, kw_only=True)
class RowsFile:
    """The file with the interactions."""

    member: str
    """Its path inside the archive; its own name where the data set is one plain file."""
    separator: str = ","
    columns: Mapping[str, str] = field(default_factory=dict)
    """Names of the columns by role; empty where there is no header: then user, item, rating, timestamp."""
    duplicates: str = "error"
    ticks_per_second: int = 1


@dataclass(frozen=True, kw_only=True)
class TitlesFile:
    """The file whose first two columns are the item and its title."""

    member: str
    separator: str = ","
    encoding: Literal["utf-8", "latin-1"] = "utf-8"
    has_header: bool = True


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """One public data set."""

    name: str
    summary: str
    address: str
    """Official address of the archive."""
    archive: str
    """Name of the archive on disk and at a mirror."""
    rows: RowsFile
    counts: Counts
    license: str
    titles: TitlesFile | None = None
    md5: str | None = None
    """Published checksum of the archive; None where none is published or the archive changes over time."""
    has_md5_beside: bool = False
    """Whether the owners keep the checksum in a file beside the archive, its name + ".md5"."""
    min_user_items: int = 0
    """Users with fewer items are left out unless the caller says otherwise."""
    substitutes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Well-known extracts as Parquet files that may replace the archive, with their unusual columns by role."""

    @property
    def is_zip(self) -> bool:
        """Whether the archive is a zip file, not the file with the rows itself."""
        return self.archive.endswith(".zip")

    @property
    def folders(self) -> tuple[str, ...]:
        """Names that the unpacked archive may have."""
        inside = str(PurePosixPath(self.rows.member).parent)
        return tuple(
            dict.fromkeys(([] if inside == "." else [inside]) + [self.name, self.archive.removesuffix(".zip")])
        )

    @property
    def parquet_files(self) -> dict[str, Mapping[str, str]]:
        """Names of Parquet files that hold the rows, with their unusual columns by role."""
        return {f"{self.name}.parquet": {}, **self.substitutes}


_HALF_STARS = {"user": "userId", "item": "movieId", "rating": "rating", "timestamp": "timestamp"}


def _movielens(
    name: str,
    summary: str,
    counts: Counts,
    md5: str | None,
    rows: RowsFile | None = None,
    titles: TitlesFile | None = None,
) -> Dataset:
    """A set of GroupLens; those published since 2015 are CSV files with headers and standard names."""
    return Dataset(
        name=name,
        summary=summary,
        address=f"{_GROUPLENS}{name}.zip",
        archive=f"{name}.zip",
        rows=rows or RowsFile(member=f"{name}/ratings.csv", columns=_HALF_STARS),
        titles=titles or TitlesFile(member=f"{name}/movies.csv"),
        counts=counts,
        license=_RESEARCH,
        md5=md5,
        has_md5_beside=True,
    )


_ALL = (
    _movielens(
        "ml-100k",
        "MovieLens 100K, 1997-1998: whole stars",
        Counts(100_000, 943, 1_682),
        "0e33842e24a9c977be4e0107933c0723",
        RowsFile(member="ml-100k/u.data", separator="\t"),
        TitlesFile(member="ml-100k/u.item", separator="|", encoding="latin-1", has_header=False),
    ),
    _movielens(
        "ml-1m",
        "MovieLens 1M, 2000-2003: whole stars",
        Counts(1_000_209, 6_040, 3_706),
        "c4d9eecfca2ab87c1945afe126590906",
        RowsFile(member="ml-1m/ratings.dat", separator="::"),
        TitlesFile(member="ml-1m/movies.dat", separator="::", encoding="latin-1", has_header=False),
    ),
    _movielens(
        "ml-10m",
        "MovieLens 10M, 1995-2009: half stars",
        Counts(10_000_054, 69_878, 10_677),
        "ce571fd55effeba0271552578f2648bd",
        RowsFile(member="ml-10M100K/ratings.dat", separator="::"),
        TitlesFile(member="ml-10M100K/movies.dat", separator="::", has_header=False),
    ),
    _movielens(
        "ml-20m",
        "MovieLens 20M, 1995-2015: half stars; the paper's first set",
        Counts(20_000_263, 138_493, 26_744),
        "cd245b17a1ae2cc31bb14903e1204af3",
    ),
    _movielens(
        "ml-25m",
        "MovieLens 25M, 1995-2019: half stars",
        Counts(25_000_095, 162_541, 59_047),
        "6b51fb2759a8657d3bfcbfc42b592ada",
    ),
    _movielens(
        "ml-latest-small",
        "MovieLens, a small set for trying out; it changes over time",
        Counts(100_836, 610, 9_724),
        None,
    ),
    Dataset(
        name="amazon-video-games",
        summary="Amazon Video Games, 1996-2014: whole stars; the paper's second set",
        address="https://snap.stanford.edu/data/amazon/productGraph/categoryFiles/ratings_Video_Games.csv",
        archive="ratings_Video_Games.csv",
        rows=RowsFile(member="ratings_Video_Games.csv", duplicates="last"),
        counts=Counts(1_324_753, 826_767, 50_210),
        license="no license stated; cite McAuley et al. 2015 (doi.org/10.1145/2766462.2767755)",
        min_user_items=10,
        substitutes={"amazon-video-games-2014-sasrec.parquet": {"timestamp": "position"}},
    ),
    Dataset(
        name="retail-rocket",
        summary="RetailRocket shop events, 2015: view, addtocart, transaction",
        address="https://www.kaggle.com/api/v1/datasets/download/retailrocket/ecommerce-dataset",
        archive="ecommerce-dataset.zip",
        rows=RowsFile(
            member="events.csv",
            columns={"user": "visitorid", "item": "itemid", "type": "event", "timestamp": "timestamp"},
            duplicates="last",  # a visitor views an item again and again
            ticks_per_second=1000,
        ),
        counts=Counts(2_756_101, 1_407_580, 235_061),
        license="CC BY-NC-SA 4.0; kaggle.com/datasets/retailrocket/ecommerce-dataset",
        substitutes={"retail-rocket-sslrec.parquet": {}},
    ),
)
DATASETS: Mapping[str, Dataset] = {dataset.name: dataset for dataset in _ALL}
"""Every data set by its name."""
