# SPDX-License-Identifier: Apache-2.0
"""The user database of the tests: the user of a process has the name TEST_USER.

Python finds it by PYTHONPATH. So tests and pages are the same whoever runs them.
"""

import os
import pwd

_real = pwd.getpwuid


def getpwuid(uid: int) -> pwd.struct_passwd:
    """Return the entry of a user with the name that the tests give them."""
    return pwd.struct_passwd((os.environ["TEST_USER"], *_real(uid)[1:]))


if "TEST_USER" in os.environ:
    pwd.getpwuid = getpwuid
