"""How the site is built: `make docs`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_site"))

from opencse import __version__

project = "opencse"
author = "the opencse authors"
copyright = "the opencse authors, Apache-2.0"
release = __version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "docstrings",
    "mathml",
    "reference",
]
exclude_patterns = ["_site"]
myst_enable_extensions = ["dollarmath", "attrs_inline"]
myst_heading_anchors = 3
nb_execution_mode = "off"
nb_output_stderr = "remove"
suppress_warnings = ["mystnb.unknown_mime_type"]

default_role = "code"
smartquotes = False
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
napoleon_use_ivar = True
napoleon_google_docstring = True

html_theme = "furo"
html_title = "opencse"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_show_sphinx = False
html_copy_source = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
