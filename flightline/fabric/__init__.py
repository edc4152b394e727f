"""Collectives over several nodes: which node or path is to blame when the group is slow. Pure but for the launchers."""
