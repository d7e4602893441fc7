"""Models to serve, made once."""

import csv
from pathlib import Path

import pytest

import topnrank as tnr


@pytest.fixture(scope="session")
def serving_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with four models of the demo's films, and the films' titles and genres."""
    folder, data = tmp_path_factory.mktemp("serving"), tnr.demo_data()
    models = {
        "films": tnr.TopNRank(
            num_threads=1,
            epochs=3,
            neighbors=20,
            neighbor_penalty=50.0,
            factor_weight=1.0,
            popularity=0.0,
            order="none",
        ),
        "linear": tnr.EASE(),
        "vectors": tnr.BPR(user_representation="factors", num_threads=1, epochs=3),
        "popular": tnr.Popularity(),
    }
    for name, model in models.items():
        model.fit(data).save(folder / f"{name}.safetensors")
    with (folder / "items.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["item", "title", "group"])
        for item, title in tnr.demo_titles().items():
            name, _, genre = title.rpartition(", ")
            writer.writerow([item, name, genre])
    return folder


@pytest.fixture(scope="session")
def serving(serving_folder: Path) -> Path:
    """The same, by a shorter name."""
    return serving_folder
