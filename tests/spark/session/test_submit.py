"""spark-submit, as users run it."""

import subprocess
from pathlib import Path

import pyarrow.parquet as pq
import pyspark
import pytest
from numpy.testing import assert_allclose

import topnrank as tnr

SUPPORT = Path(__file__).parents[2] / "support"
DATA = tnr.synthetic(40, 20, seed=1)


@pytest.mark.filterwarnings("ignore:this model learned to rank the items")
def test_a_submitted_job_trains_on_the_cluster(cluster, tmp_path):
    pq.write_table(DATA.to_arrow(), tmp_path / "ratings.parquet")
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    command = [submit, "--master", cluster.master, SUPPORT / "submitted_job.py", tmp_path.as_uri() + "/ratings.parquet"]
    done = subprocess.run(
        [*map(str, command), str(tmp_path / "model.safetensors")],
        env=dict(cluster.environment),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    ours, theirs = tnr.load(tmp_path / "model.safetensors"), tnr.TopNRank(task="rated", factors=4, epochs=1).fit(DATA)
    # whoever has every item gets no list
    assert f"lists: {len(set(theirs.recommend(n=2)['user'].to_pylist()))}\n" in done.stdout
    for name, array in theirs.fitted.arrays.items():
        assert_allclose(ours.fitted.arrays[name], array, rtol=1e-4, atol=1e-5, err_msg=name)
