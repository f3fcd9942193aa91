# SPDX-License-Identifier: Apache-2.0
"""Runs tests by a Python that has no pytest: ``python run_pytest.py PACKAGES WORD...``.

PACKAGES is a folder with pytest and hypothesis. What both have, such as SQLAlchemy, is taken from
the Python that runs it.
"""

import sys

if __name__ == "__main__":
    sys.path.append(sys.argv[1])
    import pytest

    sys.exit(pytest.main(["-p", "no:cacheprovider", "-c", "/dev/null", *sys.argv[2:]]))
