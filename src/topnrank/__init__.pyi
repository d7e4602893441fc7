"""The public names and where they are defined; the only list of them (see `__init__.py`)."""

from .data import (
    Amounts as Amounts,
    Centered as Centered,
    ConversionRate as ConversionRate,
    EventWeights as EventWeights,
    Grades as Grades,
    Interactions as Interactions,
    ItemCount as ItemCount,
    OrderFacts as OrderFacts,
    Recency as Recency,
    Relevance as Relevance,
    Threshold as Threshold,
    Unary as Unary,
    WeightColumn as WeightColumn,
    demo_data as demo_data,
    demo_titles as demo_titles,
    load_dataset as load_dataset,
    load_titles as load_titles,
    order_facts as order_facts,
    read as read,
    synthetic as synthetic,
)
from .errors import (
    DataError as DataError,
    DiskError as DiskError,
    DivergenceError as DivergenceError,
    InputError as InputError,
    ModelFileError as ModelFileError,
    NotFittedError as NotFittedError,
    OutOfMemoryError as OutOfMemoryError,
    OutputError as OutputError,
    ParameterError as ParameterError,
    StorageError as StorageError,
    TopNRankError as TopNRankError,
    TopNRankWarning as TopNRankWarning,
    UnknownIdError as UnknownIdError,
)
from .evaluation import (
    Evaluation as Evaluation,
    UserFolds as UserFolds,
    evaluate as evaluate,
    split_last as split_last,
    split_last_session as split_last_session,
    split_per_user as split_per_user,
    split_time as split_time,
)
from .experiments.compare.competitors import (
    Competitor as Competitor,
    ImplicitModel as ImplicitModel,
    LightFMModel as LightFMModel,
)
from .experiments.compare.result import (
    Comparison as Comparison,
)
from .experiments.compare.run import (
    compare as compare,
)
from .experiments.paper.reproduce import (
    reproduce as reproduce,
)
from .experiments.tuning.event_weights import (
    learn_event_weights as learn_event_weights,
)
from .experiments.tuning.tune import (
    tune as tune,
)
from .losses import (
    Laplace as Laplace,
    Ramp as Ramp,
    ReLU as ReLU,
    Sigmoid as Sigmoid,
)
from .models import (
    BPR as BPR,
    EASE as EASE,
    MFADG as MFADG,
    MODELS as MODELS,
    TFMAP as TFMAP,
    WARP as WARP,
    BiasedMF as BiasedMF,
    CLiMF as CLiMF,
    GaussianRank as GaussianRank,
    ItemIdOrder as ItemIdOrder,
    ItemMean as ItemMean,
    ListPMF as ListPMF,
    ListRank as ListRank,
    Model as Model,
    NeighborRidge as NeighborRidge,
    NextItemRidge as NextItemRidge,
    Popularity as Popularity,
    Random as Random,
    RecentPopularity as RecentPopularity,
    SequenceRank as SequenceRank,
    TopNRank as TopNRank,
    Transitions as Transitions,
    XCLiMF as XCLiMF,
    load as load,
)
from .training import (
    SGD as SGD,
    AdaGrad as AdaGrad,
)

__version__: str
