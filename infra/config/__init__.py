"""What a stack may say: the keys, the checks and the frozen settings they become. No pulumi import."""
