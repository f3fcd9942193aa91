# SPDX-License-Identifier: Apache-2.0
"""The small changes that are tried, each called a mutant: where the source can be changed, and how.

Cosmic Ray finds the places and changes the source. Of its operators those are used that can change
what a program does without breaking it at once: a comparison is moved by one or turned round, not
replaced by each of nine others. One operator is added: a statement that is left out.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import parso
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Example, Operator
from cosmic_ray.plugins import get_operator


class LeaveOutStatement(Operator):
    """Put ``pass`` for a call, a ``raise``, a ``del``, or an assignment to a field or an item."""

    KINDS = ("atom_expr", "await", "raise_stmt", "del_stmt")

    def mutation_positions(self, node: Any) -> Iterator[tuple[Any, Any]]:
        """Find a whole statement: what ends with its line."""
        if node.type != "simple_stmt":
            return
        first = node.children[0]
        stored = first.type == "expr_stmt" and first.children[0].type == "atom_expr"
        if (
            first.type in self.KINDS
            or stored
            or (first.type == "keyword" and first.value == "raise")
        ):
            yield first.start_pos, first.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        """Put ``pass``, and keep the indentation."""
        before = node.get_first_leaf().prefix
        node.children[0] = parso.python.tree.Keyword("pass", node.start_pos, before)
        return node

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        """Show what becomes of a statement."""
        return (Example("f(x)\n", "pass\n"), Example("a.b = 1\n", "pass\n"))


CORE = (
    "AddNot ReplaceUnaryOperator_Delete_Not ReplaceAndWithOr ReplaceOrWithAnd ReplaceTrueWithFalse"
    " ReplaceFalseWithTrue ReplaceBreakWithContinue ReplaceContinueWithBreak ZeroIterationForLoop"
    " ExceptionReplacer NumberReplacer ReplaceUnaryOperator_USub_UAdd"
    " ReplaceComparisonOperator_Eq_NotEq ReplaceComparisonOperator_NotEq_Eq"
    " ReplaceComparisonOperator_Lt_LtE ReplaceComparisonOperator_LtE_Lt"
    " ReplaceComparisonOperator_Gt_GtE ReplaceComparisonOperator_GtE_Gt"
    " ReplaceComparisonOperator_Is_IsNot ReplaceComparisonOperator_IsNot_Is"
    " ReplaceBinaryOperator_Add_Sub ReplaceBinaryOperator_Sub_Add ReplaceBinaryOperator_Mul_Div"
    " ReplaceBinaryOperator_Div_Mul ReplaceBinaryOperator_FloorDiv_Mul"
    " ReplaceBinaryOperator_Mod_Mul ReplaceBinaryOperator_Pow_Mul"
    " ReplaceBinaryOperator_BitOr_BitAnd ReplaceBinaryOperator_BitAnd_BitOr"
)
OPERATORS: dict[str, type[Operator]] = {
    "LeaveOutStatement": LeaveOutStatement,
    **{name: get_operator(f"core/{name}") for name in CORE.split()},
}
#: Lines that stay as they are: what is written to a log is for people, and no test reads it; a
#: signal might go to a process that is not one of the tests'.
LEFT_ALONE = re.compile(r"LOG\.\w+\(|os\.kill")


@dataclass(frozen=True)
class Mutant:
    """One change: an operator, and at which of the places where it can be used; lines from 1."""

    file: str
    line: int
    operator: str
    occurrence: int
    #: Says the same for as long as its line stays the same, whatever is changed elsewhere.
    name: str

    def changed(self, source: str) -> str:
        """Return the source with this change."""
        changed = mutate_code(source, OPERATORS[self.operator](), self.occurrence)
        assert changed is not None
        return str(changed)


def pick(root: Path, files: list[str], sample: int, seed: int) -> list[Mutant]:
    """Return ``sample`` mutants of the files; the same for the same seed and the same lines."""

    def order(mutant: Mutant) -> str:
        return hashlib.sha256(f"{seed}:{mutant.name}".encode()).hexdigest()

    found = [mutant for file in files for mutant in mutants(file, (root / file).read_text())]
    return sorted(sorted(found, key=order)[:sample], key=lambda it: (it.file, it.line))


def mutants(file: str, source: str) -> Iterator[Mutant]:
    """Find every mutant of one file."""
    lines = source.splitlines()
    nodes = list(ast_nodes(get_ast(source)))
    for operator, kind in OPERATORS.items():
        occurrence = -1
        seen: Counter[str] = Counter()
        for node in nodes:
            for (line, _), _ in kind().mutation_positions(node):
                occurrence += 1
                text = lines[line - 1].strip()
                if has_no_effect(node) or LEFT_ALONE.match(text):
                    continue
                name = f"{file}:{operator}:{text}"
                seen[name] += 1
                yield Mutant(file, line, operator, occurrence, f"{name}:{seen[name]}")


def has_no_effect(node: Any) -> bool:
    """Tell whether a node is part of a decorator or annotation, or a ``*`` that only unpacks."""
    if node.type == "operator" and node.value[0] == "*":
        return node.parent.type not in ("term", "power")
    while node.parent is not None:
        parent = node.parent
        if parent.type == "annassign" and node is parent.children[1]:
            return True
        if parent.type == "tfpdef" and node is parent.children[2]:
            return True
        if parent.type == "decorator" or (parent.type == "funcdef" and node is parent.annotation):
            return True
        node = parent
    return False
