"""Model files and checkpoints: damaged by accident, and crafted with right checksums by somebody who knows the format."""

import contextlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from torture_models import answers, data, model_files


def used(path: Path) -> Any:
    """Loads a file and does what a server does with it: the lists of all users, pairs, new users, similar items, reasons."""
    import topnrank as tnr

    model = tnr.load(path)
    lists = model.recommend(n=5)
    users, items = model.user_ids_.tolist(), model.item_ids_.tolist()
    requests: list[Callable[[], Any]] = [
        lambda: model.recommend(users[:1], n=3),
        lambda: model.score(users[:3], items[:3]),
        lambda: model.recommend(history=items[:3], n=3),
        lambda: model.recommend(history=[(item, 4.0) for item in items[:3]], n=3),
        lambda: model.similar_items(items[0], n=3),
        lambda: model.similar_users(users[0], n=3),
        lambda: model.explain(users[0], items[0]),
        lambda: model.explain(item=items[1], history=[(item, 4.0) for item in items[:3]]),
    ]
    for request in requests:
        with contextlib.suppress(tnr.errors.TopNRankError):
            request()
    return lists


def damaged(draw: np.random.Generator, content: bytes) -> bytes:
    """With changed bits, a zeroed part, a part of another place, or the end cut off."""
    changed = bytearray(content)
    place, size = int(draw.integers(len(changed))), int(draw.integers(1, 600))
    kind = draw.integers(5)
    if kind <= 1:
        for at in draw.integers(0, len(changed), int(draw.integers(1, 4))):
            changed[at] ^= 1 << int(draw.integers(8))
    elif kind == 2:
        changed[place : place + size] = bytes(len(changed[place : place + size]))
    elif kind == 3:
        other = int(draw.integers(len(changed)))
        changed[place : place + size] = changed[other : other + size]
    else:
        del changed[place:]
    return bytes(changed)


def damaged_model(draw: np.random.Generator, folder: Path) -> str:
    """Refused, or the same answers."""
    import topnrank as tnr

    name = str(draw.choice(list(model_files())))
    (folder / "model").write_bytes(damaged(draw, model_files()[name]))
    try:
        lists = tnr.load(folder / "model").recommend(n=5)
    except tnr.ModelFileError:
        return "refused"
    return "same answers" if lists.equals(answers(name)) else f"FAILED: other answers of {name}"


_NUMBERS = (0, 1, -1, 2**31 - 1, -(2**31), 2**62, -(2**62), np.nan, np.inf, -np.inf, 1e30)
_FACTS = (
    None,
    -1,
    0,
    0.5,
    1e300,
    "x",
    [],
    {},
    True,
    10**40,
    [1, "a"],
    {"object": "x"},
    {"feedback": {"kind": 3}},
    "auto",
)


def _odd(draw: np.random.Generator, array: Any) -> Any:
    """A change of an array: a value, two values exchanged, its type, its shape, its length."""
    kind = draw.integers(7)
    with np.errstate(all="ignore"):
        if kind <= 2 and array.size:
            odd = (*_NUMBERS, array.size, array.size + 1)
            changed = array.copy()
            changed.reshape(-1)[int(draw.integers(array.size))] = np.array(odd[int(draw.integers(len(odd)))]).astype(
                array.dtype
            )
            return changed
        if kind == 3 and array.size:
            changed, (one, two) = array.copy().reshape(-1), draw.integers(array.size, size=2)
            changed[one], changed[two] = changed[two], changed[one]
            return changed.reshape(array.shape)
        if kind == 4:
            return array.astype(draw.choice(["<f4", "<f8", "<i4", "<i8", "<u1", "?"]))
    if kind == 5:
        return array[: int(draw.integers(len(array) + 1))] if array.ndim else array
    shapes = [(-1,), (1, -1), (-1, 1), array.shape[::-1], (*array.shape, 1)]
    return np.ascontiguousarray(array).reshape(shapes[int(draw.integers(len(shapes)))])


def _change_fact(draw: np.random.Generator, facts: dict[str, Any]) -> None:
    """Another value of one fact, however deep it lies."""
    name = str(draw.choice([*facts, "more"]))
    if isinstance(facts.get(name), dict) and facts[name] and draw.integers(3):
        _change_fact(draw, facts[name])
    else:
        facts[name] = _FACTS[int(draw.integers(len(_FACTS)))]


def crafted(draw: np.random.Generator, content: bytes, kind: str, path: Path) -> None:
    """Writes a file with right checksums and odd content to `path`."""
    from topnrank.io.tensors import read_file, write_file

    path.write_bytes(content)
    facts, arrays = read_file(path, kind)
    facts = {key: value for key, value in facts.items() if key not in ("kind", "format")}
    for _ in range(int(draw.integers(1, 3))):
        if draw.integers(3):
            chosen = str(draw.choice(list(arrays)))
            if draw.integers(12) == 0:
                del arrays[chosen]
            else:
                arrays[chosen] = _odd(draw, arrays[chosen])
        else:
            _change_fact(draw, facts)
    write_file(path, kind, arrays, facts)


def crafted_model(draw: np.random.Generator, folder: Path) -> str:
    """Refused, or usable without a crash and with finite scores."""
    import topnrank as tnr

    name = str(draw.choice(list(model_files())))
    crafted(draw, model_files()[name], "model", folder / "model")
    try:
        with np.errstate(all="ignore"):
            lists = used(folder / "model")
    except tnr.errors.TopNRankError:
        return "refused"
    finite = np.isfinite(lists["score"].to_numpy()).all()
    return "usable" if finite else f"FAILED: scores of {name} that are not finite"


# ----------------------------------------------------------------------------------------------------
# Checkpoints.


def _train(folder: Path, epochs: int = 4) -> Any:
    import topnrank as tnr

    model = tnr.TopNRank(task="rated", factors=3, epochs=epochs, batch_size=30)
    return model.fit(data(), checkpoint=folder, validation=0.3, patience=50)


@cache
def _checkpoint() -> tuple[bytes, dict[str, Any]]:
    """The file after two of four rounds, and what the four rounds learn."""
    import tempfile

    from topnrank.training.checkpoint import FILE, Checkpoint

    with tempfile.TemporaryDirectory() as folder:
        files, write = [], Checkpoint.write
        Checkpoint.__init__.__kwdefaults__["seconds"] = 0.0

        def kept(self: Any, *arguments: Any, **options: Any) -> None:
            write(self, *arguments, **options)
            files.append(Path(folder, FILE).read_bytes())

        Checkpoint.write = kept  # type: ignore[method-assign]
        try:
            learned = _train(Path(folder)).fitted.arrays
        finally:
            Checkpoint.write = write  # type: ignore[method-assign]
        return files[1], learned


def _resumed(draw: np.random.Generator, folder: Path, make: Callable[..., object], *, same: bool) -> str:
    import topnrank as tnr
    from topnrank.training.checkpoint import FILE

    content, learned = _checkpoint()
    make(draw, content, folder / FILE)
    try:
        with np.errstate(all="ignore"):
            found = _train(folder).fitted.arrays
    except tnr.errors.TopNRankError:
        return "refused"
    equal = all(np.array_equal(found[name], array) for name, array in learned.items())
    if equal:
        return "same bits"
    return "FAILED: other bits" if same else "usable"


def damaged_checkpoint(draw: np.random.Generator, folder: Path) -> str:
    """Refused, or resumed to the same bits."""
    return _resumed(draw, folder, lambda draw, content, file: file.write_bytes(damaged(draw, content)), same=True)


def crafted_checkpoint(draw: np.random.Generator, folder: Path) -> str:
    """Refused, or resumed without a crash: who can write a checkpoint decides what is learned."""
    return _resumed(draw, folder, lambda draw, content, file: crafted(draw, content, "checkpoint", file), same=False)
