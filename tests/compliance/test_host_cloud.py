"""Where the host believes AWS to be, and as whom it goes there."""

from .looking import say

KEYS = "grep -rnoE '^[[:space:]]*(aws_access_key_id|endpoint_url|services|ca_bundle|credential_process|role_arn)' /root/.aws /home/*/.aws"
AGENT = "grep -nE '^[[:space:]]*(http_proxy|https_proxy|shared_credential_file)' /opt/aws/amazon-cloudwatch-agent/etc/common-config.toml"


def test_the_instances_role_is_who_it_is(ask):
    """Keys or an endpoint in a profile of root's stand above the instance's role: records then go to another account. No value is shown."""
    rows = [*ask.found(KEYS), *(row.partition("=")[0] for row in ask.found(AGENT))]
    say.none("AWS is told by", rows, "the instance's role alone", "remove the lines; revoke keys that were there")


def test_aws_has_the_addresses_that_dns_says(ask):
    """A line of /etc/hosts holds an endpoint at an address that AWS has given to somebody else since."""
    rows = ask.found("grep -nHE '^[^#]*(amazonaws[.]com|[.]aws([[:space:]]|$))' /etc/hosts")
    say.none("/etc/hosts has", rows, "no address of AWS", "remove the lines")


def test_no_certificate_authority_is_a_strangers(ask, strangers):
    """Whoever holds its key can answer in the name of every endpoint of AWS."""
    rows = ask.found("find /usr/local/share/ca-certificates /etc/pki/ca-trust/source/anchors -type f")
    strangers.none("certificates are also believed of", rows, "the distribution's authorities")
