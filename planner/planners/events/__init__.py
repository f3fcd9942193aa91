"""Events: a change runs through resources that depend on each other, and touches only what it must.

Source: Solar, "events propagation". ``document`` reads what is to happen, ``rules`` finds out what
a change can reach, ``unroll`` lets an action run twice where that ends a loop, ``subset`` keeps a
part of it, ``planner`` writes the plan.
"""
