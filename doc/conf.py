# SPDX-License-Identifier: Apache-2.0
"""How the documentation is built. Nothing is fetched from a network."""

import sys
from importlib.metadata import version as version_of
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "ActionPlan"
copyright = "the ActionPlan authors"
release = version = version_of("actionplan")

extensions = [
    "sphinx.ext.autodoc",
    "decisions",
    "from_the_code",
    "screens",
]
exclude_patterns = ["_build"]
default_role = "code"
highlight_language = "text"
# Two dashes begin an option and are no dash.
smartquotes = False

html_theme = "furo"
html_title = f"ActionPlan {version}"
html_static_path = ["_static"]
html_css_files = ["drawings.css"]
# Highlighting that reads well on a light and on a dark page.
pygments_style = "friendly"
pygments_dark_style = "github-dark"

# Else the navigation has all classes and functions, on every page: half of the time of a build.
toc_object_entries = False
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_typehints = "signature"
# Classes of one name in two packages (Action): annotations link to the first of them.
suppress_warnings = ["ref.python"]
