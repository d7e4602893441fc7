"""`topnrank warmup`."""

import time

from topnrank.cli.options import with_options
from topnrank.cli.output import Output, facts_table


@with_options
def warmup(output: Output) -> None:
    """Compile the kernels now, for containers and new machines.

    The first training or request need not wait for it then. The compiled kernels stay in the cache folder (TOPNRANK_CACHE,
    else the user's), and later processes load them within a second. Trains and asks a small model for each task.

    \b
    Examples:
      topnrank warmup
      TOPNRANK_CACHE=/opt/topnrank topnrank warmup
    """
    import topnrank as tnr
    from topnrank._cache import cache_folder
    from topnrank.kernels.jit import must_compile

    compiles = must_compile()
    started = time.perf_counter()
    data = tnr.synthetic(80, 60, 2000)
    train, test = tnr.split_per_user(data, test=0.2)
    with output.compiling_told():
        for task in ("catalog", "rated"):
            model = tnr.TopNRank(task=task, epochs=1).fit(train)
            tnr.evaluate(model, test)
            model.similar_items(model.item_ids_[0])
            model.explain(model.user_ids_[0], model.item_ids_[0])
            if task == "catalog":
                model.recommend([model.user_ids_[0]])
                model.recommend()
                model.recommend(history=[(model.item_ids_[0], 5)])
    facts = {"kernels": str(cache_folder()), "compiled": compiles, "seconds": round(time.perf_counter() - started, 1)}
    output.report(facts_table(facts))
    output.result(facts)
