"""Benchmarks: each prints its figures and ratios; none is a timed test."""
