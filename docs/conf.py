"""The documentation site, made by `make docs`: the Markdown of the repository, and a reference made from docstrings.

Its source is the root of the repository, so that a link means the same there and here. Docstrings are read, not
imported: nothing has to be compiled. The site asks no other host for anything, and can be opened from a folder.
"""

import re
import tomllib
from pathlib import Path

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import SphinxError

_ROOT = Path(__file__).parent.parent

project = "Unbasket"
release = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
extensions = ["myst_nb", "autoapi.extension", "sphinx_copybutton"]  # myst_nb: myst_parser, and notebooks
root_doc = "docs/index"
highlight_language = "none"  # of blocks that name none
include_patterns = ["*.md", "data/README.md", "docs/**.md", "docs/notebook.ipynb"]
nb_execution_mode = "off"  # the notebook is shown as it is; the tests run it
exclude_patterns = [".*", "build", "dist", "site", "src", "tests"]  # not even looked into
suppress_warnings = [
    "autoapi.python_import_resolution",  # it does not see `A, B = 0, 1`
    "misc.highlighting_failure",  # a shortened exchange over HTTP is not quite HTTP
]

myst_heading_anchors = 4  # named as GitHub names them
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

autoapi_dirs = [str(_ROOT / "src" / "unbasket")]
autoapi_generate_api_docs = False  # docs/api says what is shown where
autoapi_member_order = autodoc_member_order = "bysource"
add_module_names = False
maximum_signature_line_length = 100

html_theme = "furo"
html_title = f"Unbasket {release}"
html_extra_path = ["site"]
html_favicon = "../src/unbasket/service/web/icon.svg"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#00695c", "color-brand-content": "#00796b"},
    "dark_css_variables": {"color-brand-primary": "#4db6ac", "color-brand-content": "#4db6ac"},
}


def _show_titles(_app: Sphinx, _name: str, content: list[str]) -> None:
    """Show the title of a block of code, such as ```csv title="sales.csv"."""
    content[0] = re.sub(r'^```(\w+) title="(.+)"$', r"```{code-block} \1\n:caption: \2", content[0], flags=re.MULTILINE)


def _translate_docstring(_app: Sphinx, _what: str, _name: str, _obj: object, _opt: object, lines: list[str]) -> None:
    """Docstrings are Markdown at heart: make their `code`, their |T| and their indented drawings reStructuredText."""
    text = re.sub(r"(?<!`)`([^`]+)`(?!`)", r"``\1``", "\n".join(lines)).replace("|", r"\|")
    lines[:] = re.sub(r"(?<=\n\n)(?=    )", "::\n\n", text).split("\n")


def _shorten_type(app: Sphinx, env: BuildEnvironment, node: pending_xref, _content: nodes.Node) -> nodes.Node | None:
    """Show `unbasket.params.Params` as `Params`, with a link to where the reference has it."""
    if node.get("refdomain") != "py":
        return None
    name = node["reftarget"].rpartition(".")[2]
    python = env.domains.python_domain
    for full in sorted(python.objects):
        if full.rpartition(".")[2] == name and not full.startswith("unbasket.spark."):
            return python.resolve_xref(env, node["refdoc"], app.builder, "obj", full, node, nodes.Text(name))
    return nodes.Text(name)


def _refuse_other_hosts(app: Sphinx, _error: Exception | None) -> None:
    """Fail if a page would load something from elsewhere."""
    for page in sorted(app.outdir.rglob("*.html")):
        text = page.read_text(encoding="utf-8")
        for asset in re.findall(r'<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)="((?:https?:)?//[^"]+)"', text):
            raise SphinxError(f"{page.relative_to(app.outdir)} would ask another host for {asset}")


def setup(app: Sphinx) -> None:
    """Connect what is above."""
    app.connect("source-read", _show_titles)
    app.connect("autodoc-process-docstring", _translate_docstring)
    app.connect("missing-reference", _shorten_type)
    app.connect("build-finished", _refuse_other_hosts)
