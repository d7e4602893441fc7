"""Files: saving and loading round trips, and files that are refused."""

# ruff: noqa: D102 (the name of a test says what it tests)

from pathlib import Path
from unittest.mock import patch

import pytest

from topnrank.errors import ModelFileError, OutputError
from topnrank.io import tensors as storage
from topnrank.models.base import Model
from topnrank.models.persistence import load
from topnrank.testing.base import ModelUnderTest, columns, learned


class FileTests(ModelUnderTest):
    """Tests of save and load; the model must be in `topnrank.models.MODELS` for `load` to know it."""

    @pytest.fixture
    def path(self, fitted: Model, tmp_path: Path) -> Path:
        """A file with the fitted model."""
        fitted.save(tmp_path / "model.safetensors")
        return tmp_path / "model.safetensors"

    def test_a_loaded_model_is_the_model_that_was_saved(self, fitted: Model, path: Path) -> None:
        loaded = load(path)
        assert type(loaded) is type(fitted)
        assert loaded.get_params() == fitted.get_params()
        assert learned(loaded) == learned(fitted)
        assert loaded.fitted.info == fitted.fitted.info
        assert columns(loaded.recommend(n=5)) == columns(fitted.recommend(n=5))
        history = {fitted.item_ids_[3]: 5, fitted.item_ids_[8]: 2}
        assert columns(loaded.recommend(history=history)) == columns(fitted.recommend(history=history))

    def test_saving_what_was_loaded_gives_the_same_file(self, path: Path) -> None:
        again = path.with_name("again.safetensors")
        load(path).save(again)
        assert again.read_bytes() == path.read_bytes()

    @pytest.mark.parametrize("fraction", [0.0, 0.001, 0.5, 0.999])
    def test_a_truncated_file_is_refused(self, path: Path, fraction: float) -> None:
        content = path.read_bytes()
        path.write_bytes(content[: int(fraction * len(content))])
        with pytest.raises(ModelFileError, match=r"model\.safetensors: .*damaged or cut off"):
            load(path)

    def test_a_foreign_file_is_refused(self, path: Path) -> None:
        path.write_text("user,item,rating\n1,2,3\n" * 100)
        with pytest.raises(ModelFileError, match="is not a topnrank model file"):
            load(path)

    def test_a_newer_file_is_refused(self, fitted: Model, path: Path) -> None:
        with patch.object(storage, "FORMAT", storage.FORMAT + 1):
            fitted.save(path)
        with pytest.raises(ModelFileError, match="upgrade topnrank"):
            load(path)

    def test_a_file_of_another_kind_is_refused(self, path: Path) -> None:
        facts, arrays = storage.read_file(path, "model")
        storage.write_file(path, "checkpoint", arrays, {"model": facts["model"]})
        with pytest.raises(ModelFileError, match="is a topnrank checkpoint file; a model file is needed"):
            load(path)

    def test_a_missing_file_and_a_folder_are_refused(self, path: Path) -> None:
        with pytest.raises(ModelFileError, match="there is no such model file"):
            load(path.with_name("other.safetensors"))
        with pytest.raises(ModelFileError, match="is a folder"):
            load(path.parent)

    def test_a_path_that_cannot_be_written_is_one_clear_sentence(self, fitted: Model, path: Path) -> None:
        with pytest.raises(OutputError, match="its folder does not exist"):
            fitted.save(path.parent / "none" / "model.safetensors")
        with pytest.raises(OutputError, match="is a folder"):
            fitted.save(path.parent)
