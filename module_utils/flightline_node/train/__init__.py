"""A training run on this node: started where the gate lets it, again after each fault, and told of."""
