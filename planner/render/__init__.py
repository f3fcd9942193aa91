"""Pictures of a plan as text that other programs draw."""
