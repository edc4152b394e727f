"""What a cluster on Kubernetes is told: manifests from a stack's outputs. Pure."""
