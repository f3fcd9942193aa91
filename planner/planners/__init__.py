"""The planners that come with the product."""
