"""The HDFS of the tests is a real one, and Spark on the cluster and hdfs-native see the same files."""

import pytest

hdfs_native = pytest.importorskip("hdfs_native", reason="hdfs-native is not installed: pip install 'topnrank[remote]'")


def names(hdfs, folder):
    """Names of the files under a folder of HDFS, as a client without Java sees them."""
    listed = hdfs_native.Client(hdfs.address).list_status(folder, True)
    return [status.path.removeprefix(folder).lstrip("/") for status in listed if not status.isdir]


def test_parquet_written_by_the_cluster_is_read_by_the_cluster(spark, hdfs):
    place = f"{hdfs.address}/tables/squares"
    spark.range(1000).selectExpr("id", "id * id as square").repartition(3).write.parquet(place)
    read = spark.read.parquet(place)
    assert read.count() == 1000
    assert read.selectExpr("sum(square)").first()[0] == sum(i * i for i in range(1000))
    written = names(hdfs, "/tables/squares")
    assert "_SUCCESS" in written
    assert len([name for name in written if name.startswith("part-") and name.endswith(".parquet")]) == 3


def test_a_checkpoint_on_hdfs_cuts_the_lineage(spark, hdfs):
    context = spark.sparkContext
    context.setCheckpointDir(f"{hdfs.address}/checkpoints")
    numbers = context.parallelize(range(100), 2).map(lambda x: x + 1)
    numbers.checkpoint()
    assert numbers.sum() == 5050
    assert numbers.isCheckpointed()
    assert numbers.getCheckpointFile().startswith(f"{hdfs.address}/checkpoints/")
    assert sorted(name.rsplit("/", 1)[-1] for name in names(hdfs, "/checkpoints")) == ["part-00000", "part-00001"]
    assert "ReliableCheckpointRDD" in numbers.toDebugString().decode()
    assert "ParallelCollectionRDD" not in numbers.toDebugString().decode()


def test_a_file_written_without_java_is_read_by_the_cluster(spark, hdfs):
    with hdfs_native.Client(hdfs.address).create("/texts/one.txt") as file:
        file.write(b"a line\nanother line\n")
    assert spark.sparkContext.textFile(f"{hdfs.address}/texts").collect() == ["a line", "another line"]
