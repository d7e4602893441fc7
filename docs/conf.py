"""Settings of the documentation site: `make docs` builds it, offline, with warnings as errors."""

import inspect
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

import topnrank

HYPER_PARAMETERS = {name for kind in topnrank.MODELS.values() for name in kind().get_params()}

project = "topnrank"
author = "The topnrank developers"
copyright = "The topnrank developers, Apache-2.0"  # noqa: A001 (Sphinx's name)
version = release = topnrank.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "plain_docstrings"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
root_doc = "index"
nitpicky = False

myst_enable_extensions = ["deflist", "colon_fence"]
myst_heading_anchors = 3

autodoc_typehints = "none"  # the text says what a parameter is; the types stand in the source
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
maximum_signature_line_length = 88
python_use_unqualified_type_names = True
add_module_names = False
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = "topnrank"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_theme_options = {"sidebar_hide_name": False}
pygments_style = "friendly"
pygments_dark_style = "monokai"


def short_signature(app, what, name, obj, options, signature, return_annotation):
    """Hyper-parameters are listed below a model with their meaning; its signature does not repeat all 35 of them."""
    from topnrank import Model

    if what == "class" and inspect.isclass(obj) and issubclass(obj, Model):
        return "(**hyper_parameters)", None
    return signature, return_annotation


def skip_hyper_parameters(app, what, name, obj, skip, options):
    """The text of a model's class explains all its hyper-parameters; they are not listed again as members."""
    return True if what == "class" and name in HYPER_PARAMETERS else None


def setup(app):
    """Called by Sphinx."""
    app.connect("autodoc-process-signature", short_signature)
    app.connect("autodoc-skip-member", skip_hyper_parameters)
