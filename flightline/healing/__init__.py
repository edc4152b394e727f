"""Healing: a sick node leaves service, is repaired step by step and comes back only with proof. See docs/healing.md."""
