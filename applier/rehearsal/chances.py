# SPDX-License-Identifier: Apache-2.0
"""Pseudo-random numbers that depend only on their arguments, of which one is a seed."""

from __future__ import annotations

import hashlib


def chance(*words: object) -> float:
    """Return a number from 0 to below 1, evenly distributed, the same for the same words.

    >>> chance(1, "a") == chance(1, "a"), chance(1, "a") == chance(2, "a")
    (True, False)
    """
    text = "\0".join(map(str, words)).encode(errors="replace")
    return int.from_bytes(hashlib.blake2b(text, digest_size=6).digest(), "big") / 2**48
