"""The docs site: `make docs` builds it into build/docs. A warning fails the build; no page loads anything remote."""

import ast
import os
import re
import shutil
import sys
from pathlib import Path

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.errors import ExtensionError

# The docstrings are in the compiled modules, not in the type stubs beside them.
os.environ["SPHINX_AUTODOC_IGNORE_NATIVE_MODULE_TYPE_STUBS"] = "1"

import streamlasso

HERE = Path(__file__).parent
#: What a browser fetches by itself.
REMOTE = re.compile(r"""(?:<(?:script|img|link)\b[^>]*\b(?:src|href)=|url\(|@import\s)["']?https?:""")
#: Files outside docs/, and the pages that include them.
INCLUDED = {"benchmarks/README.md": "benchmarks.md", "CONTRIBUTING.md": "contributing.md"}

project = "streamlasso"
author = copyright = "streamlasso developers"
version = release = streamlasso.__version__
extensions = ["myst_nb", "numpydoc", "sphinx.ext.autodoc", "sphinx_copybutton", "sphinx_design"]
nitpicky = True

# --- pages ------------------------------------------------------------------------------------------------------------

highlight_language = "none"
smartquotes = False
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_raise_on_error = True

# --- API reference ----------------------------------------------------------------------------------------------------

default_role = "literal"
autodoc_default_options = {"members": True, "imported-members": True, "member-order": "bysource"}
autodoc_inherit_docstrings = False
autodoc_typehints = "none"
# Sphinx 9.0's new autodoc fails where an event gives a signature to a class that has none.
autodoc_use_legacy_class_based = True
numpydoc_show_class_members = False

# --- look -------------------------------------------------------------------------------------------------------------

html_theme = "furo"
html_title = f"streamlasso {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_math_renderer = "mathml"
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True


def copy_examples(app):
    """Sphinx reads what is under docs/ only; notebooks and skeletons live in examples/."""
    shutil.copytree(HERE.parent / "examples", HERE / "examples", dirs_exist_ok=True)


def link_to_included(app, docname, source):
    """Links to files outside docs/, which work in the repository, lead to the pages that include them."""
    for path, page in INCLUDED.items():
        source[0] = re.sub(rf"\]\((?:\.\./)+{re.escape(path)}", f"](/{page}", source[0])


def constructor_signature(app, what, name, obj, options, signature, returns):
    """A compiled class does not say what its constructor takes; the source beside it does."""
    module = sys.modules[obj.__module__] if what == "class" else None
    if module is None or module.__file__.endswith(".py"):
        return None
    source = Path(module.__file__).parent / f"{obj.__module__.rpartition('.')[2]}.py"
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            node.args.args.pop(0)
            arguments = re.sub(r"\b[A-Z_]+\b", lambda name: repr(getattr(module, name.group())), ast.unparse(node.args))
            return f"({arguments})", None
    return "()", None


def skip_members_of_others(app, what, name, obj, skip, options):
    """What scikit-learn and river add to an estimator is documented there."""
    return True if not str(getattr(obj, "__module__", None) or "streamlasso").startswith("streamlasso") else None


def inline_formula(translator, node):
    translator.body.append(convert(node.astext()))
    raise nodes.SkipNode


def formula(translator, node):
    translator.body.append(f'<div class="formula">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def refuse_remote(app, error):
    """The site works offline: no scripts, fonts or pictures from elsewhere."""
    for path in Path(app.outdir).rglob("*.*") if error is None else ():
        if path.suffix in (".html", ".css") and (found := REMOTE.search(path.read_text(encoding="utf-8"))):
            raise ExtensionError(f"{path.relative_to(app.outdir)} loads something remote: {found.group()}")


def setup(app):
    app.connect("builder-inited", copy_examples)
    app.connect("source-read", link_to_included)
    app.connect("autodoc-process-signature", constructor_signature)
    app.connect("autodoc-skip-member", skip_members_of_others)
    app.connect("build-finished", refuse_remote)
    app.add_html_math_renderer("mathml", (inline_formula, None), (formula, None))
