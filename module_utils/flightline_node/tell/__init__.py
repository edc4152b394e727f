"""What leaves the node: the record's log lines, packed bundles, evidence, metrics."""
