"""Drawings of a plan: SVG, Graphviz dot and Mermaid."""
