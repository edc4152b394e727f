"""The results and training tables."""

import pulumi_aws as aws

from infra.planning import tables

from .base import ClusterPlan, Component


class Tables(Component):
    """On demand: a preflight of a thousand nodes writes for a minute and then nothing for days."""

    def __init__(self, name: str, plan: ClusterPlan) -> None:
        super().__init__(name, plan)
        self.results = self._table("results", tables.results(plan.names.results_table))
        self.training = self._table("training", tables.training(plan.names.training_table))
        self.register_outputs({"results": self.results.name, "training": self.training.name})

    def _table(self, key: str, plan: tables.Table) -> aws.dynamodb.Table:
        return aws.dynamodb.Table(
            f"{self._name}-{key}",
            name=plan.name,
            billing_mode="PAY_PER_REQUEST",
            hash_key=plan.hash_key,
            range_key=plan.range_key,
            attributes=[aws.dynamodb.TableAttributeArgs(name=part, type="S") for part in plan.attributes],
            global_secondary_indexes=[
                aws.dynamodb.TableGlobalSecondaryIndexArgs(
                    name=index.name,
                    key_schemas=_keys(index),
                    projection_type="ALL",
                )
                for index in plan.indexes
            ],
            ttl=aws.dynamodb.TableTtlArgs(attribute_name=plan.ttl, enabled=True),
            point_in_time_recovery=aws.dynamodb.TablePointInTimeRecoveryArgs(enabled=True),
            server_side_encryption=aws.dynamodb.TableServerSideEncryptionArgs(
                enabled=True, kms_key_arn=self.plan.key_arn
            ),
            deletion_protection_enabled=self.plan.keep_data,
            tags=self.tags(),
            opts=self.kept(),
        )


def _keys(index: tables.Index) -> list[aws.dynamodb.TableGlobalSecondaryIndexKeySchemaArgs]:
    parts = ((index.hash_key, "HASH"), (index.range_key, "RANGE"))
    return [
        aws.dynamodb.TableGlobalSecondaryIndexKeySchemaArgs(attribute_name=name, key_type=kind) for name, kind in parts
    ]
