# SPDX-License-Identifier: Apache-2.0
"""Drawings of a plan: SVG, Graphviz dot and Mermaid."""
