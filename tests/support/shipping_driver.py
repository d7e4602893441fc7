"""A driver whose executors have all that topnrank needs, but not topnrank: `python shipping_driver.py MASTER CONF`.

Prints one JSON object: what happened without the package, with it, and in a second application.
"""

import json
import sys

from topnrank.errors import ParameterError
from topnrank.spark.session.session import get_session
from topnrank.spark.session.shipping import SETTING, check_executors, package_digest, ship_package


def use_kernel():
    """A job's function, made here because functions of this file cannot be imported on the executors."""

    def run(number, rows):
        import os
        import time

        import numpy as np

        import topnrank
        from topnrank.losses._links_kernel import apply_link
        from topnrank.spark.session.shipping import package_digest

        list(rows)
        time.sleep(1)  # so that both executors get a task
        f = np.array([0.0, 1.0])
        s, slope = np.empty(2), np.empty(2)
        apply_link(True, f, s, slope)
        hits = sum(apply_link.stats.cache_hits.values())
        return [(topnrank.__path__[0], package_digest(), hits, s.tolist(), os.getpid())]

    return run


def kernels_used(session):
    return session.sparkContext.parallelize(range(2), 2).mapPartitionsWithIndex(use_kernel()).collect()


def main(master, conf):
    story = {"digest": package_digest()}
    session = get_session(master, conf={**conf, SETTING: "never"})
    story["not shipped"] = ship_package(session)
    try:
        check_executors(session)
    except ParameterError as error:
        story["error"] = str(error)
    session.conf.set(SETTING, "auto")
    path = list(sys.path)
    story["shipped"] = [ship_package(session), ship_package(session)]
    story["path is as before"] = sys.path == path
    story["files"] = len(session.sparkContext.listFiles)
    check_executors(session)
    story["first"] = kernels_used(session)
    session.stop()

    session = get_session(master, conf={**conf, SETTING: "auto"})  # Java remembers settings of the session before
    ship_package(session)
    story["second"] = kernels_used(session)
    session.stop()
    print(json.dumps(story))


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
