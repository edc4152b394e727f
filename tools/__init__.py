"""Generators and packers: pages and packages made from the sources. Not part of the product."""
