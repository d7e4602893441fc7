"""Where files are: on this machine, on HDFS or on S3.

    hdfs://namenode:8020/logs/ratings    hdfs-native (extra "remote"), no Java; reads the cluster's files in HADOOP_CONF_DIR
    s3://bucket/logs/ratings             pyarrow; credentials, AWS_REGION and AWS_ENDPOINT_URL as AWS's own tools take them
    file:///logs/ratings                 the path itself

`place` tells which one is meant. Nothing is imported and nobody is asked before an address is used.
"""

from topnrank.io.paths import AnyPath, Entry, Location, RemotePath, local_path, parse_path

__all__ = ["AnyPath", "Entry", "Location", "RemotePath", "local_path", "parse_path"]
