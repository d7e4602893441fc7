"""Requests from many threads while files are replaced and children are forked."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from torture_models import answers, model_files, models

REQUESTS, FORKS = 10_000, 5
"""Of one case."""


def served(draw: np.random.Generator, folder: Path) -> str:
    """Requests from eight threads while the file is replaced and children are forked: each answer is right."""
    import topnrank as tnr

    names, path = list(model_files()), folder / "served"
    path.write_bytes(model_files()[names[0]])
    done, wrong = threading.Event(), []

    def swap() -> None:
        turn = 0
        while not done.wait(0.002):
            turn += 1
            (folder / "next").write_bytes(model_files()[names[turn % len(names)]])
            os.replace(folder / "next", path)

    def ask(number: int) -> None:
        model = tnr.load(path) if number % 10 == 0 else models()[names[number % len(names)]]
        name = _name_of(model)
        users = model.user_ids_
        user = users[number % len(users)]
        everybody = number % 25 == 0
        rows = model.recommend(n=5).to_pylist() if everybody else model.recommend([user], n=5).to_pylist()
        if rows != (_lists(name)[None] if everybody else _lists(name)[user]):
            wrong.append((name, number))

    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        with ThreadPoolExecutor(8) as pool:
            numbers = iter(draw.integers(0, 10**6, REQUESTS).tolist())
            for _ in range(FORKS + 1):
                pending = [pool.submit(ask, number) for number in islice(numbers, REQUESTS // FORKS)]
                _check_child()
                for one in pending:
                    one.result()
    finally:
        done.set()
        swapping.join()
    return f"FAILED: wrong answers {wrong[:3]}" if wrong else "right"


@cache
def _lists(name: str) -> dict[Any, list[dict[str, Any]]]:
    """The right lists by user, and under None those of all."""
    rows = answers(name).to_pylist()
    by_user: dict[Any, list[dict[str, Any]]] = {user: [] for user in models()[name].user_ids_}
    for row in rows:
        by_user[row["user"]].append(row)
    return by_user | {None: rows}


def _name_of(model: Any) -> str:
    """Which of the models it is: no two have the same kind, parameters and users."""
    key = _key(model)
    return next(name for name, one in models().items() if _key(one) == key)


def _key(model: Any) -> tuple[Any, ...]:
    return model.name, repr(model.get_params()), model.fitted.info.fingerprint


def _check_child() -> None:
    child = os.fork()
    if child == 0:
        try:
            right = all(model.recommend(n=5).equals(answers(name)) for name, model in models().items())
        except BaseException:
            right = False
        os._exit(0 if right else 3)
    status = os.waitpid(child, 0)[1]
    if status:
        raise AssertionError(f"a forked child ended with {status}")
