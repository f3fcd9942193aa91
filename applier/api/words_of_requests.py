# SPDX-License-Identifier: Apache-2.0
"""Names requests and their fields in sentences that name commands and options.

The operations that both faces share compose the sentences, for people at a command line.
"""

from __future__ import annotations

import re

#: The end of a sentence with options, and how it ends for a client of the API.
_INSTEAD = (
    (r"actionplan approve (\S+) --reason TEXT", r'POST /v2/plans/\1/approve with {"why": TEXT}'),
    (r"\(create --facts-from\)", "(facts_from of POST /v2/plans)"),
    (r"apply --set max_workers=N, or limits in the document", "limits in the document"),
    (
        r"'create --out' writes all",
        "send the document that it was made of, or a copy with all of them",
    ),
    (
        r"actionplan action set \S+ (\S+) --state succeeded\|failed --reason TEXT",
        r'POST /v2/plans/ID/actions/\1/settle with {"state": "SUCCEEDED" or "FAILED", "why": TEXT}',
    ),
)


def of_api(text: str) -> str:
    """Return a sentence with requests in the place of commands that have options.

    >>> of_api("to approve it: actionplan approve 6a1f0001 --reason TEXT")
    'to approve it: POST /v2/plans/6a1f0001/approve with {"why": TEXT}'
    """
    for command, request in _INSTEAD:
        text = re.sub(command, request, text)
    return text
