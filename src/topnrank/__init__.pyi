"""The public names and where they are defined; the only list of them (see `__init__.py`)."""

from .data import (
    Centered as Centered,
    ConversionRate as ConversionRate,
    EventWeights as EventWeights,
    Grades as Grades,
    Interactions as Interactions,
    ItemCount as ItemCount,
    Recency as Recency,
    Relevance as Relevance,
    Threshold as Threshold,
    Unary as Unary,
    WeightColumn as WeightColumn,
    demo_data as demo_data,
    demo_titles as demo_titles,
    load_dataset as load_dataset,
    load_titles as load_titles,
    read as read,
    synthetic as synthetic,
)
from .errors import (
    DataError as DataError,
    DivergenceError as DivergenceError,
    InputError as InputError,
    ModelFileError as ModelFileError,
    NotFittedError as NotFittedError,
    OutputError as OutputError,
    ParameterError as ParameterError,
    StorageError as StorageError,
    TopNRankError as TopNRankError,
    UnknownIdError as UnknownIdError,
)
from .evaluation import (
    Evaluation as Evaluation,
    evaluate as evaluate,
    split_last as split_last,
    split_per_user as split_per_user,
    split_time as split_time,
)
from .experiments.compare import (
    Comparison as Comparison,
    Competitor as Competitor,
    ImplicitModel as ImplicitModel,
    LightFMModel as LightFMModel,
    compare as compare,
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
    ItemMean as ItemMean,
    ListPMF as ListPMF,
    ListRank as ListRank,
    Model as Model,
    NeighborRidge as NeighborRidge,
    Popularity as Popularity,
    Random as Random,
    TopNRank as TopNRank,
    XCLiMF as XCLiMF,
    load as load,
)
from .training import (
    SGD as SGD,
    AdaGrad as AdaGrad,
)

__version__: str
