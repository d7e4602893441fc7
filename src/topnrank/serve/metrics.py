"""What the server counts, for Prometheus and for the operator's page; over all workers where there are several.

Workers share their numbers by files in the folder PROMETHEUS_MULTIPROC_DIR, which `topnrank serve` makes before they start.
"""

import os
import time
from typing import Any, NamedTuple

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from topnrank.serve.wire import Latency

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SHARED = "PROMETHEUS_MULTIPROC_DIR"
BUCKETS = tuple(s / 1e3 for s in (0.25, 0.5, 1, 1.5, 2, 3, 5, 7.5, 10, 15, 25, 50, 100, 250, 500, 1000, 2500, 10_000))


class Metrics:
    """Counters of one worker."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        shared = {"registry": self.registry}
        self.requests = Counter("topnrank_requests", "Requests by route and status", ["route", "status"], **shared)
        self.seconds = Histogram(
            "topnrank_request_seconds", "Time of requests by route", ["route"], buckets=BUCKETS, **shared
        )
        self.events = Counter("topnrank_events", "Events by what became of them", ["result"], **shared)
        self.unknown_items = Counter(
            "topnrank_unknown_items", "Items in requests and events that the model does not know", **shared
        )
        self.swaps = Counter("topnrank_model_swaps", "New model files taken in", ["model"], **shared)
        self.failures = Counter("topnrank_model_load_failures", "Model files refused", ["model"], **shared)
        modes: Any = {"multiprocess_mode": "mostrecent", **shared}
        self.modified = Gauge("topnrank_model_modified_seconds", "Time of the model's file", ["model"], **modes)
        self.through = Gauge("topnrank_model_events_through", "The model's last event", ["model"], **modes)
        self.started = Gauge("topnrank_start_seconds", "Start of the oldest worker", multiprocess_mode="min", **shared)
        self.started.set(time.time())

    def route(self, name: str) -> "RouteMetrics":
        """The counters of a route."""
        return RouteMetrics(self, name, {}, self.seconds.labels(name))

    def text(self) -> bytes:
        """For Prometheus."""
        return bytes(generate_latest(self._all()))

    def latencies(self) -> list[Latency]:
        """By route, the busiest first."""
        buckets: dict[str, list[tuple[float, float]]] = {}
        requests: dict[str, float] = {}
        errors: dict[str, float] = {}
        for metric in self._all().collect():
            for sample in metric.samples:
                route = sample.labels.get("route", "")
                if sample.name == "topnrank_requests_total":
                    requests[route] = requests.get(route, 0.0) + sample.value
                    if sample.labels["status"] >= "5":
                        errors[route] = errors.get(route, 0.0) + sample.value
                elif sample.name == "topnrank_request_seconds_bucket":
                    buckets.setdefault(route, []).append((float(sample.labels["le"]), sample.value))
        routes = sorted(requests, key=lambda route: -requests[route])
        return [_latency(one, requests[one], errors.get(one, 0.0), sorted(buckets.get(one, []))) for one in routes]

    def _all(self) -> CollectorRegistry:
        if not os.environ.get(SHARED):
            return self.registry
        registry = CollectorRegistry()
        MultiProcessCollector(registry)
        return registry


class RouteMetrics(NamedTuple):
    """What one route counts."""

    metrics: Metrics
    name: str
    statuses: dict[int, Any]
    seconds: Any

    def observe(self, status: int, seconds: float) -> None:
        """A request that was answered."""
        counter = self.statuses.get(status)
        if counter is None:
            counter = self.statuses[status] = self.metrics.requests.labels(self.name, str(status))
        counter.inc()
        self.seconds.observe(seconds)


def _latency(route: str, requests: float, errors: float, buckets: list[tuple[float, float]]) -> Latency:
    return Latency(route, int(requests), int(errors), _quantile(buckets, 0.5), _quantile(buckets, 0.99))


def _quantile(buckets: list[tuple[float, float]], share: float) -> float | None:
    """Milliseconds below which that share of the requests lies, by the bucket it falls in."""
    if not buckets or buckets[-1][1] == 0:
        return None
    wanted, low, before = share * buckets[-1][1], 0.0, 0.0
    for high, count in buckets:
        if count >= wanted:
            if high == float("inf"):
                return 1000 * low
            return 1000 * (low + (high - low) * (wanted - before) / max(count - before, 1e-12))
        low, before = high, count
    return 1000 * low
