"""Where events are kept: SQLite in one file, or PostgreSQL for several machines. See `base.EventStore`."""

from topnrank.serve.store.base import Event, EventStore, open_store

__all__ = ["Event", "EventStore", "open_store"]
