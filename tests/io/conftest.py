"""A real S3 service on loopback."""

import contextlib
import io
from collections.abc import Iterator

import pytest


class S3Store:
    """The bucket "tests", by AWS's own client."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self.address = "s3://tests"
        import boto3

        self.client = boto3.client("s3", endpoint_url=endpoint)
        self.client.create_bucket(Bucket="tests")

    def write(self, path: str, content: bytes) -> None:
        self.client.put_object(Bucket="tests", Key=path[1:], Body=content)

    def read(self, path: str) -> bytes:
        return self.client.get_object(Bucket="tests", Key=path[1:])["Body"].read()

    def files(self, path: str) -> list[str]:
        prefix = path[1:] + "/"
        listed = self.client.list_objects_v2(Bucket="tests", Prefix=prefix).get("Contents", [])
        ways = [item["Key"].removeprefix(prefix) for item in listed]
        return sorted(way for way in ways if way and not way.endswith("/"))  # markers of folders are no files


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Store]:
    """The service, which the environment names as it would name any other."""
    pytest.importorskip("moto", reason="moto is not installed: pip install 'moto[server]'")
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stderr(io.StringIO()):
        server.start()
        host, port = server.get_host_and_port()
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patch.setenv("AWS_REGION", "us-east-1")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        patch.setenv("AWS_ACCESS_KEY_ID", "tests")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "tests")
        yield S3Store(f"http://{host}:{port}")
        server.stop()
