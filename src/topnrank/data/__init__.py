"""Interactions and where they come from: files, frames, arrays, a generator; and how rows become weights."""

from topnrank.data.datasets import load_dataset, load_titles
from topnrank.data.demo import demo_data, demo_titles
from topnrank.data.feedback import (
    Centered,
    ConversionRate,
    EventWeights,
    Feedback,
    ItemCount,
    Threshold,
    Unary,
    WeightColumn,
)
from topnrank.data.grades import Grades, Relevance
from topnrank.data.ids import IdMap
from topnrank.data.interactions import Interactions
from topnrank.data.readers import read
from topnrank.data.recency import Recency
from topnrank.data.synthetic import Planted, Recipe, plant, synthetic

__all__ = [
    "Centered",
    "ConversionRate",
    "EventWeights",
    "Feedback",
    "Grades",
    "IdMap",
    "Interactions",
    "ItemCount",
    "Planted",
    "Recency",
    "Recipe",
    "Relevance",
    "Threshold",
    "Unary",
    "WeightColumn",
    "demo_data",
    "demo_titles",
    "load_dataset",
    "load_titles",
    "plant",
    "read",
    "synthetic",
]
