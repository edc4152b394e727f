"""A boot on a real host of the bed: what a stack's plan gives a node, and nothing else. AWS is emulated."""
