"""Files on this machine, on HDFS and on S3.

    hdfs://namenode:8020/logs/ratings    hdfs-native (extra "remote"), no Java; reads the cluster's files in HADOOP_CONF_DIR
    s3://bucket/logs/ratings             pyarrow; credentials, AWS_REGION and AWS_ENDPOINT_URL as AWS's own tools take them
    file:///logs/ratings                 the path itself

`parse_path` gives a `pathlib.Path` or a `RemotePath`. Nothing is imported or connected before a remote path is used.
"""

from topnrank.io.paths import AnyPath, Entry, Location, RemotePath, local_path, parse_path

__all__ = ["AnyPath", "Entry", "Location", "RemotePath", "local_path", "parse_path"]
