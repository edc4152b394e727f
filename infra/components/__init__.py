"""Components: one per file, made from the stack's plan. They create what `infra.planning` planned."""
