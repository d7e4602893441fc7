"""From a model file to a recommender in production: an HTTP server, events that count at once, and a page.

`topnrank serve model.safetensors` starts it; `create_app` makes the same ASGI application for any other host.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from topnrank.errors import ParameterError

if TYPE_CHECKING:
    from starlette.applications import Starlette

__all__ = ["create_app", "require_packages"]

PACKAGES = ("starlette", "uvicorn", "msgspec", "prometheus_client")


def require_packages() -> None:
    """A ParameterError that says how to install what serving needs, where it is missing."""
    from importlib.util import find_spec

    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        raise ParameterError(
            f"serving needs {', '.join(missing)}, which is not installed; install it with: pip install 'topnrank[serve]'"
        )


def create_app(models: str | Sequence[str] | Mapping[str, str], **settings: Any) -> "Starlette":
    """An ASGI application that serves model files, for uvicorn, Ray Serve, BentoML or any other host.

    Parameters
    ----------
    models : the path of a model file, several of them, or {name: path}; the first answers where a request names none.
    settings : the fields of `topnrank.serve.settings.Settings`, such as `items`, `events` and `api_keys`.

    Each process that runs it loads the files by itself; large arrays are mapped, so that processes share them. For many
    workers on few cores set NUMBA_NUM_THREADS=1 and OPENBLAS_NUM_THREADS=1 before Python starts.
    """
    require_packages()
    from topnrank.serve.app import make_app
    from topnrank.serve.models import names_of
    from topnrank.serve.settings import Settings

    if not isinstance(models, Mapping):
        models = names_of([models] if isinstance(models, str) else list(models))
    return make_app(Settings(models=dict(models), **settings))
