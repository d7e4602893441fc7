"""topnrank: list-wise top-N recommendation.

    import topnrank as tnr

    data = tnr.read("ratings.csv")
    train, test = tnr.split_per_user(data, test=0.5, seed=0)
    model = tnr.TopNRank().fit(train)
    print(tnr.evaluate(model, test))
    print(model.recommend(["u1"], n=10).to_pandas())

The public names are those of `__init__.pyi`; each is imported when first used, so that `import topnrank` is quick.
"""

import ast
import pkgutil

import lazy_loader

__version__ = "0.1.0"


def _names_by_module() -> dict[str, list[str]]:
    """The imports of the stub; read here, because `lazy_loader.attach_stub` cannot read a stub in a zip archive."""
    stub = ast.parse(pkgutil.get_data(__name__, "__init__.pyi") or b"")
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    return {node.module or "": [alias.name for alias in node.names] for node in imports}


__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submod_attrs=_names_by_module())
