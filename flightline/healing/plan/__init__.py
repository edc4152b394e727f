"""From what was seen of a fleet to each node's next step: ladder, budgets, breaker. Pure but for seen."""
