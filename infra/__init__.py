"""The Pulumi program: settings -> planning -> components."""
