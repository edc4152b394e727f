"""Stores what nodes log: CloudWatch Logs subscription to DynamoDB and people."""
