"""What a user submits: `spark-submit submitted_job.py RATINGS.parquet MODEL.safetensors`."""

import sys

from topnrank.spark import TopNRank, get_session

if __name__ == "__main__":
    ratings = get_session().read.parquet(sys.argv[1])
    model = TopNRank(task="rated", factors=4, epochs=1).fit(ratings)
    model.to_local().save(sys.argv[2])
    print("lists:", model.recommendForAllUsers(2).count())
