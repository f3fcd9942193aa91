# SPDX-License-Identifier: Apache-2.0
"""The error for a package that only an extra of the installation brings. Imports nothing."""


class MissingExtra(ImportError):
    """``what``, such as a program, needs a package that is not installed.

    >>> str(MissingExtra("actionplan-api", "api"))
    "actionplan-api needs the extra 'api': pip install '.[api]', in a clone of ActionPlan"
    """

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(
            f"{what} needs the extra '{extra}': pip install '.[{extra}]', in a clone of ActionPlan"
        )
