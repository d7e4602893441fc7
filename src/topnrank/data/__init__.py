"""Interactions and where they come from: files, frames, arrays, a generator; and how rows become weights."""

from topnrank.data.datasets.demo import demo_data, demo_titles
from topnrank.data.datasets.fetch import load_dataset, load_titles
from topnrank.data.datasets.synthetic import Planted, Recipe, plant, synthetic
from topnrank.data.feedback.grades import Grades, Relevance
from topnrank.data.feedback.policies import (
    Amounts,
    Centered,
    ConversionRate,
    EventWeights,
    Feedback,
    ItemCount,
    Threshold,
    Unary,
    WeightColumn,
)
from topnrank.data.feedback.recency import Recency
from topnrank.data.ids import IdMap
from topnrank.data.interactions import Interactions
from topnrank.data.order import OrderFacts, order_facts
from topnrank.data.readers.read import read

__all__ = [
    "Amounts",
    "Centered",
    "ConversionRate",
    "EventWeights",
    "Feedback",
    "Grades",
    "IdMap",
    "Interactions",
    "ItemCount",
    "OrderFacts",
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
    "order_facts",
    "plant",
    "read",
    "synthetic",
]
