"""Public data sets: files in exactly the official formats, from a server on loopback, a folder or the cache."""

import shutil
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import topnrank as tnr
from support.file_server import FileServer, serving
from support.official_files import EVENTS, RATED, TITLES, official, pack, without_known_checksums
from topnrank.data.datasets.fetch import LocalCopy, data_folder, fetch_dataset, find_dataset
from topnrank.data.datasets.registry import DATASETS
from topnrank.errors import DataError, OutputError, ParameterError

MOVIELENS = [name for name in DATASETS if name.startswith("ml-")]
ZIPPED = [name for name in DATASETS if DATASETS[name].is_zip]


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No local data, no mirror, a cache of its own."""
    for name in ("TOPNRANK_DATA", "TOPNRANK_MIRROR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("TOPNRANK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "data"


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    """A server with all data sets."""
    without_known_checksums(monkeypatch)
    with serving() as running:
        for one in official().values():
            running.files |= one.files
        monkeypatch.setenv("TOPNRANK_MIRROR", f"{running.address}/")
        yield running


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but nobody listens
        monkeypatch.setenv("TOPNRANK_MIRROR", f"http://127.0.0.1:{taken.getsockname()[1]}")
        yield


def assert_official(name: str, data: tnr.Interactions) -> None:
    """All rows of the official file, unfiltered."""
    if name == "retail-rocket":
        return assert_events(data)
    users, items, ratings, times = zip(*official()[name].rows, strict=True)
    wanted = tnr.Interactions.from_arrays(users, items, ratings=ratings, timestamps=times)
    assert data.fingerprint() == wanted.fingerprint()
    return None


def assert_events(data: tnr.Interactions) -> None:
    """The last event of each kind, times in seconds."""
    times, users, kinds, items, _ = zip(*EVENTS[1:], strict=True)
    wanted = tnr.Interactions.from_arrays(users, items, types=kinds, timestamps=[time // 1000 for time in times])
    assert data.fingerprint() == wanted.fingerprint()
    assert data.type_names == ("addtocart", "transaction", "view")
    assert data.merged_rows == 1


def test_every_data_set_has_a_file_in_its_official_format() -> None:
    assert list(official()) == list(DATASETS)
    assert {one.archive for one in official().values()} == {one.archive for one in DATASETS.values()}


@pytest.mark.parametrize("name", DATASETS)
def test_fetched_and_read(name: str, mirror: FileServer, empty_cache: Path) -> None:
    assert find_dataset(name) is None
    assert_official(name, tnr.load_dataset(name, min_user_items=0))
    assert tnr.load_titles(name) == official()[name].titles
    archive = official()[name].archive
    published = [f"{archive}.md5"] if name in MOVIELENS else []
    assert mirror.paths() == [*published, archive]
    assert (empty_cache / archive).read_bytes() == official()[name].content
    assert find_dataset(name) == LocalCopy(empty_cache / archive, "archive")


@pytest.mark.parametrize("name", DATASETS)
def test_the_official_archive_in_a_folder(name: str, no_network: None, tmp_path: Path) -> None:
    path = official()[name].write(tmp_path / "mine")
    assert_official(name, tnr.load_dataset(name, min_user_items=0, folder=path.parent))
    assert tnr.load_titles(name, folder=path.parent) == official()[name].titles


@pytest.mark.parametrize("name", ZIPPED)
def test_the_unpacked_archive_in_a_folder(
    name: str, no_network: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "mine"
    official()[name].unpack(mine / "retail-rocket" if name == "retail-rocket" else mine)
    monkeypatch.setenv("TOPNRANK_DATA", str(mine))
    assert_official(name, tnr.load_dataset(name))
    assert tnr.load_titles(name) == official()[name].titles
    assert not data_folder().exists()


def test_a_parquet_file_in_a_folder(no_network: None, tmp_path: Path) -> None:
    users, items, ratings, times = zip(*RATED, strict=True)
    columns = {"user": users, "item": items, "rating": ratings, "timestamp": times}
    pq.write_table(pa.table(columns), tmp_path / "ml-20m.parquet")
    assert_official("ml-20m", tnr.load_dataset("ml-20m", folder=tmp_path))
    with pytest.raises(DataError, match="ml-20m cannot be fetched"):
        tnr.load_titles("ml-20m", folder=tmp_path)
    movies = {"item": list(TITLES), "title": list(TITLES.values())}
    pq.write_table(pa.table(movies), tmp_path / "ml-20m.movies.parquet")
    assert tnr.load_titles("ml-20m", folder=tmp_path) == TITLES
    pq.write_table(pa.table({**movies, "year": ["1995", None, "", "1998"]}), tmp_path / "ml-20m.movies.parquet")
    titles = tnr.load_titles("ml-20m", folder=tmp_path)
    assert titles is not None
    assert [titles[item][-13:] for item in (11, 73)] == ["(1995) (1995)", TITLES[73][-13:]]
    pq.write_table(pa.table({"item": [1]}), tmp_path / "ml-20m.movies.parquet")
    with pytest.raises(DataError, match="needs the columns item and title"):
        tnr.load_titles("ml-20m", folder=tmp_path)


def test_the_archive_comes_before_an_extract(tmp_path: Path) -> None:
    official()["amazon-video-games"].write(tmp_path)
    pq.write_table(
        pa.table({"user": [1], "item": [1], "position": [0]}), tmp_path / "amazon-video-games-2014-sasrec.parquet"
    )
    assert tnr.load_dataset("amazon-video-games", folder=tmp_path).n_users == 1
    (tmp_path / "ratings_Video_Games.csv").unlink()
    data = tnr.load_dataset("amazon-video-games", folder=tmp_path, min_user_items=0)
    assert data.timestamps is not None
    assert (data.users.ids.tolist(), data.timestamps.tolist()) == ([1], [0])


def test_the_filter_of_the_paper(mirror: FileServer) -> None:
    data = tnr.load_dataset("amazon-video-games")
    assert data.users.ids.tolist() == ["A2HD75EMZR8QLN"]
    assert (len(data), data.items.ids[0]) == (10, "0700099867")
    assert tnr.load_dataset("amazon-video-games", min_user_items=9).n_users == 2
    assert tnr.load_dataset("ml-1m", min_user_items=2).users.ids.tolist() == [1]
    with pytest.raises(DataError, match="no rows are left"):
        tnr.load_dataset("ml-1m", min_user_items=3)


def test_half_stars_stay(mirror: FileServer) -> None:
    for name in ("ml-10m", "ml-20m", "ml-25m", "ml-latest-small"):
        ratings = tnr.load_dataset(name).ratings
        assert ratings is not None
        assert np.unique(ratings).tolist() == [0.5, 3.0, 4.5, 5.0]


def test_a_second_load_asks_nobody_and_unpacks_nothing(mirror: FileServer, empty_cache: Path) -> None:
    first = tnr.load_dataset("ml-1m")
    (rows,) = (empty_cache / "ml-1m").rglob("ratings.dat")
    made = rows.stat().st_mtime_ns
    asked = len(mirror.asked)
    assert tnr.load_dataset("ml-1m").fingerprint() == first.fingerprint()
    assert not fetch_dataset("ml-1m").is_new
    assert (len(mirror.asked), rows.stat().st_mtime_ns) == (asked, made)


def test_another_archive_of_the_same_name_is_unpacked_anew(tmp_path: Path) -> None:
    for rating in (4, 5):  # files of the same length
        (tmp_path / "ml-1m.zip").write_bytes(pack({"ml-1m/ratings.dat": f"7::8::{rating}::978300760\n"}))
        ratings = tnr.load_dataset("ml-1m", folder=tmp_path).ratings
        assert ratings is not None
        assert ratings.tolist() == [rating]


def test_the_published_checksum_is_what_counts(mirror: FileServer, empty_cache: Path) -> None:
    mirror.files["ml-latest-small.zip.md5"] = f"MD5 (ml-latest-small.zip) = {'0' * 32}".encode()
    with pytest.raises(
        DataError, match=rf"ml-latest-small cannot be fetched: .* MD5 checksum .* {'0' * 32}; it was thrown"
    ):
        tnr.load_dataset("ml-latest-small")
    assert find_dataset("ml-latest-small") is None
    mirror.files |= official()["ml-latest-small"].files
    fetched = fetch_dataset("ml-latest-small")
    assert fetched.is_new
    assert fetched.md5 is not None
    assert fetched.md5.encode() in mirror.files["ml-latest-small.zip.md5"]


@pytest.mark.parametrize("forged", [True, False])
def test_the_checksum_we_know_outweighs_the_mirrors(
    mirror: FileServer, monkeypatch: pytest.MonkeyPatch, forged: bool
) -> None:
    """A mirror that forges an archive forges the checksum beside it, too."""
    ours = "c4d9eecfca2ab87c1945afe126590906"
    monkeypatch.setitem(DATASETS, "ml-1m", replace(DATASETS["ml-1m"], md5=ours))  # type: ignore[arg-type]
    if not forged:
        for name in ("ml-1m", "ml-latest-small"):
            del mirror.files[f"{name}.zip.md5"]
    with pytest.raises(DataError, match=f"is not the published one, {ours}"):
        tnr.load_dataset("ml-1m")
    assert (fetch_dataset("ml-latest-small").md5 is None) != forged


def test_the_checksum_of_movielens_1m_is_known() -> None:
    assert DATASETS["ml-1m"].md5 == "c4d9eecfca2ab87c1945afe126590906"


def test_an_archive_that_would_fill_the_disk_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ml-1m.zip").write_bytes(pack({"ml-1m/ratings.dat": "0" * (64 << 20)}))
    with pytest.raises(DataError, match="would unpack to 67,108,864 bytes"):
        tnr.load_dataset("ml-1m", folder=tmp_path)


def test_a_lock_that_is_a_link_is_not_followed(mirror: FileServer, empty_cache: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("of the user")
    empty_cache.mkdir(parents=True)
    (empty_cache / "ml-1m.zip.lock").symlink_to(tmp_path / "precious")
    with pytest.raises(OutputError):
        tnr.load_dataset("ml-1m")
    assert (tmp_path / "precious").read_text() == "of the user"


def test_a_broken_download_is_tried_again(mirror: FileServer) -> None:
    size = len(official()["ml-20m"].content)
    mirror.breaks = [10**6, size // 2]  # the first is that of the checksum
    assert_official("ml-20m", tnr.load_dataset("ml-20m"))
    assert [one.sent for one in mirror.asked if one.path == "ml-20m.zip"] == [size // 2, size]


@pytest.mark.parametrize("name", DATASETS)
def test_without_a_network_it_says_where_to_put_which_file(name: str, no_network: None, empty_cache: Path) -> None:
    with pytest.raises(DataError) as caught:
        tnr.load_dataset(name)
    told, archive = str(caught.value), official()[name].archive
    assert told.startswith(f"{name} cannot be fetched: http://127.0.0.1:")
    assert "cannot be reached" in told
    assert f"get {archive} from {DATASETS[name].address} by another way and put it into {empty_cache}" in told
    assert f"{name}.parquet" in told
    assert "TOPNRANK_DATA" in told
    assert "\n" not in told
    official()[name].write(empty_cache)  # as told
    assert_official(name, tnr.load_dataset(name, min_user_items=0))


def test_not_to_be_fetched(mirror: FileServer, empty_cache: Path) -> None:
    with pytest.raises(DataError, match=r"ml-1m is not on this machine; get ml-1m\.zip from https://files\.grouplens"):
        tnr.load_dataset("ml-1m", fetch=False)
    assert mirror.asked == []


def test_an_address_that_is_gone(mirror: FileServer) -> None:
    del mirror.files["ratings_Video_Games.csv"]
    with pytest.raises(DataError, match=r"answered 404 .*no longer at that address; or get ratings_Video_Games\.csv"):
        tnr.load_dataset("amazon-video-games")


DAMAGED = {
    "no zip": (
        b"<html>please log in</html>",
        r"ml-1m\.zip: is not a zip archive or a damaged one .*; remove it and fetch",
    ),
    "cut off": (official()["ml-1m"].content[:-40], "is not a zip archive or a damaged one"),
    "another archive": (
        official()["ml-20m"].content,
        r"no file ml-1m/ratings\.dat in it, found ml-20m/, ml-20m/tags\.csv",
    ),
    "empty": (pack({}), r"no file ml-1m/ratings\.dat in it, found nothing"),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_archives_that_are_not_right(kind: str, tmp_path: Path) -> None:
    content, words = DAMAGED[kind]
    (tmp_path / "ml-1m.zip").write_bytes(content)
    with pytest.raises(DataError, match=words):
        tnr.load_dataset("ml-1m", folder=tmp_path)


def test_a_damaged_member(tmp_path: Path, empty_cache: Path) -> None:
    good = pack({"ml-1m/ratings.dat": "7::8::5::978300760\n" * 50})
    at = good.index(b"ratings.dat") + 14
    (tmp_path / "ml-1m.zip").write_bytes(good[:at] + bytes([good[at] ^ 0xFF]) + good[at + 1 :])
    with pytest.raises(DataError, match="is not a zip archive or a damaged one"):
        tnr.load_dataset("ml-1m", folder=tmp_path)
    assert not [path for path in empty_cache.rglob("*") if path.is_file()]


def test_nothing_is_unpacked_outside_the_cache(tmp_path: Path, empty_cache: Path) -> None:
    rows = "7::8::5::978300760\n"
    evil = {f"{up}evil.txt": "evil" for up in ("../", "../../../", "/tmp/topnrank-", "ml-1m/../../")}
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    (folder / "ml-1m.zip").write_bytes(pack({**evil, "ml-1m/ratings.dat": rows, "ml-1m/movies.dat": "8::A::B\n"}))
    assert len(tnr.load_dataset("ml-1m", folder=folder)) == 1
    assert tnr.load_titles("ml-1m", folder=folder) == {8: "A"}
    names = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert names == {"ml-1m.zip", "ratings.dat", "movies.dat"}
    assert all(path.is_relative_to(empty_cache) for path in tmp_path.rglob("*.dat"))
    assert not Path("/tmp/topnrank-evil.txt").exists()


def test_titles_that_are_not_right(tmp_path: Path) -> None:
    folder = tmp_path / "ml-1m"
    folder.mkdir()
    (folder / "ratings.dat").write_text("7::8::5::978300760\n")
    (folder / "movies.dat").write_text("8::Cats::Drama\n\nDogs::9\n")
    with pytest.raises(DataError, match=r"movies\.dat, line 3: must begin with an item number and a title .*'Dogs::9'"):
        tnr.load_titles("ml-1m", folder=tmp_path)
    shutil.copytree(folder, tmp_path / "ml-10m")
    (tmp_path / "ml-10m" / "movies.dat").write_bytes("8::Misérables::Drama\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"movies\.dat: is not utf-8 text"):
        tnr.load_titles("ml-10m", folder=tmp_path)


def test_arguments_that_are_not_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ParameterError, match=r"the data set must be one of 'ml-100k', .*did you mean 'ml-20m'\?"):
        tnr.load_dataset("ml20m")
    with pytest.raises(ParameterError, match=r"the folder must name a folder with data sets, got .*none"):
        tnr.load_dataset("ml-1m", folder=tmp_path / "none")
    monkeypatch.setenv("TOPNRANK_DATA", str(tmp_path / "none"))
    with pytest.raises(ParameterError, match="TOPNRANK_DATA must name a folder"):
        tnr.load_dataset("ml-1m")
    monkeypatch.delenv("TOPNRANK_DATA")
    monkeypatch.setenv("TOPNRANK_MIRROR", "/some/folder")
    with pytest.raises(ParameterError, match=r"TOPNRANK_MIRROR must be an address .* use TOPNRANK_DATA"):
        tnr.load_dataset("ml-1m")


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    official()["ml-1m"].write(tmp_path / "mine")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TOPNRANK_CACHE", str(tmp_path / "file"))
    with pytest.raises(OutputError, match=r"cannot be made .*TOPNRANK_CACHE"):
        tnr.load_dataset("ml-1m", folder=tmp_path / "mine")


REAL = {  # rows, users, items
    "ml-100k": (100_000, 943, 1_682),
    "ml-1m": (1_000_209, 6_040, 3_706),
    "amazon-video-games": (287_107, 31_013, 23_715),
    "retail-rocket": (99_555, 2_174, 30_113),
}


@pytest.mark.realdata
@pytest.mark.parametrize("name", REAL)
def test_real_data(name: str, realdata: Path) -> None:
    if not [*realdata.glob(f"{name}*.parquet")]:
        pytest.skip(f"no Parquet file of {name} in TOPNRANK_DATA")
    data = tnr.load_dataset(name, folder=realdata, min_user_items=0, fetch=False)
    assert (len(data), data.n_users, data.n_items) == REAL[name]
    if name in MOVIELENS:
        assert REAL[name] == DATASETS[name].counts


@pytest.mark.realdata
def test_real_data_in_detail(realdata: Path) -> None:
    if len([path for name in REAL for path in realdata.glob(f"{name}*.parquet")]) < len(REAL):
        pytest.skip("not all Parquet files are in TOPNRANK_DATA")
    assert tnr.load_dataset("amazon-video-games", folder=realdata).n_users == 7_519
    events = tnr.load_dataset("retail-rocket", folder=realdata)
    assert events.type_names == ("buy", "buy-test", "cart", "view")
    assert np.bincount(events.types).tolist() == [9_551, 2_174, 12_456, 75_374]
    small, large = (tnr.load_titles(name, folder=realdata) for name in ("ml-100k", "ml-1m"))
    assert small is not None
    assert large is not None
    assert (len(small), small[1]) == (1_682, "Toy Story (1995)")
    assert (len(large), large[1]) == (3_883, "Toy Story (1995)")
