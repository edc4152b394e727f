"""Components: one ComponentResource and its Args per file. They create what `infra.planning` planned."""
