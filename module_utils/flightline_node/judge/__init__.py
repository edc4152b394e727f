"""The judgement: one file per check, and what checks share."""
