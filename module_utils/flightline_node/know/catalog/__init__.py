"""Error catalogues, as text tables read by line: cheap to ship to a node and to import."""
