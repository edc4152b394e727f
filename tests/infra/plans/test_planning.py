"""Plans as properties: subnets, zones, FSx sizes, lifecycle rules, names."""

from dataclasses import fields
from ipaddress import IPv4Network

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from infra.config.model import NetworkSettings, ZoneSettings
from infra.planning import fsx, lifecycle, subnets
from infra.planning.names import LONGEST_REGION, Names, Place, names, too_long
from infra.planning.zones import Zone, ZoneOffering, choose

ZONES = ZoneSettings(("us-east-1b", "us-east-1a"), ("use1-az6", "use1-az4"))
VPC = st.sampled_from([IPv4Network("10.0.0.0/16"), IPv4Network("172.16.0.0/18"), IPv4Network("192.168.0.0/20")])


def network(nat="one", public=("10.0.1.0/24", "10.0.2.0/24"), private=("10.0.101.0/24", "10.0.102.0/24")):
    return NetworkSettings(zones=ZONES, vpc_cidr="10.0.0.0/16", public_cidrs=public, private_cidrs=private, nat=nat)


@st.composite
def disjoint_blocks(draw):
    """A VPC and four blocks of it that do not overlap."""
    vpc = draw(VPC)
    blocks = list(vpc.subnets(new_prefix=draw(st.integers(vpc.prefixlen + 3, 28))))
    chosen = draw(st.permutations(blocks[:8]))
    return str(vpc), [str(block) for block in chosen[:4]]


class TestSubnets:
    @given(disjoint_blocks())
    def test_blocks_inside_the_vpc_and_apart_are_accepted(self, case):
        vpc, blocks = case
        assert subnets.subnet_mistakes(vpc, blocks) == []

    @given(disjoint_blocks(), st.integers(0, 3), st.integers(0, 3))
    def test_a_block_twice_is_an_overlap_named_at_the_later_place(self, case, one, two):
        assume(one != two)
        vpc, blocks = case
        blocks[max(one, two)] = blocks[min(one, two)]
        found = subnets.subnet_mistakes(vpc, blocks)
        assert [position for position, _, _ in found] == [max(one, two)]
        assert "apart from" in found[0][2]

    @given(disjoint_blocks(), st.integers(0, 3))
    def test_a_block_outside_the_vpc_is_named(self, case, position):
        vpc, blocks = case
        blocks[position] = "100.64.8.0/24"
        assert [item[:2] for item in subnets.subnet_mistakes(vpc, blocks)] == [(position, "100.64.8.0/24")]

    def test_a_block_around_the_vpc_is_not_inside_it(self):
        assert [item[0] for item in subnets.subnet_mistakes("10.0.0.0/20", ["10.0.0.0/16"])] == [0]

    @given(st.text(max_size=20))
    def test_any_text_is_a_block_or_a_mistake(self, text):
        wanted = subnets.vpc_mistake(text)
        if wanted is None:
            assert IPv4Network(text).prefixlen in range(16, 29)

    @given(st.sampled_from(["one", "per-az", "none"]))
    def test_a_private_subnet_leaves_through_a_gateway_that_exists(self, nat):
        planned = network(nat)
        gateways = subnets.nat_zones(planned)
        for subnet in subnets.plan(planned):
            way = subnets.nat_for(planned, subnet.zone_index)
            assert way in gateways if gateways else way is None
        assert len(gateways) == {"one": 1, "per-az": 2, "none": 0}[nat]

    def test_per_az_keeps_traffic_in_its_zone(self):
        planned = network("per-az")
        assert all(subnets.nat_for(planned, item.zone_index) == item.zone_index for item in subnets.plan(planned))

    def test_the_plan(self):
        planned = subnets.plan(network())
        assert [(item.name, item.cidr, item.zone, item.public) for item in planned] == [
            ("public-1", "10.0.1.0/24", "us-east-1b", True),
            ("public-2", "10.0.2.0/24", "us-east-1a", True),
            ("private-1", "10.0.101.0/24", "us-east-1b", False),
            ("private-2", "10.0.102.0/24", "us-east-1a", False),
        ]

    def test_gpu_nodes_get_private_subnets_of_one_zone(self):
        (only,) = subnets.gpu_subnets(network())
        assert (only.name, only.public, only.zone) == ("private-1", False, ZONES.gpu_name)


ALL_ZONES = [Zone(f"eu-west-1{letter}", f"euw1-az{index}") for index, letter in enumerate("abcdef", 1)]


@st.composite
def offers(draw):
    zones = draw(st.lists(st.sampled_from(ALL_ZONES), min_size=2, unique=True))
    ids = draw(st.one_of(st.none(), st.sets(st.sampled_from([zone.zone_id for zone in zones]), min_size=1)))
    return ZoneOffering(tuple(zones), None if ids is None else frozenset(ids))


class TestZones:
    @given(offers(), st.one_of(st.none(), st.sampled_from(ALL_ZONES)), st.booleans())
    def test_the_gpu_zone_offers_the_type_and_is_the_one_wanted(self, offer, wanted, by_id):
        text = [wanted.zone_id if by_id else wanted.name] if wanted else []
        offering = {zone.zone_id for zone in offer.zones} if offer.offering is None else offer.offering
        possible = wanted is None or (wanted in offer.zones and wanted.zone_id in offering)
        if not possible:
            with pytest.raises(ValueError, match="a zone"):
                choose(text, "p5.48xlarge", offer)
            return
        chosen = choose(text, "p5.48xlarge", offer)
        assert chosen.home_id in offering
        assert wanted is None or chosen.gpu_name == wanted.name
        assert chosen.names[0] != chosen.names[1]
        # A second zone that offers the type as well, where there is one.
        assert chosen.ids[1] in offering or offering == {chosen.home_id}
        assert {Zone(*pair) for pair in zip(chosen.names, chosen.ids, strict=True)} <= set(offer.zones)

    @given(offers(), st.randoms())
    def test_the_order_of_the_answer_does_not_matter(self, offer, random):
        shuffled = list(offer.zones)
        random.shuffle(shuffled)
        assert choose([], "p5.48xlarge", offer) == choose(
            [], "p5.48xlarge", ZoneOffering(tuple(shuffled), offer.offering)
        )


SIZES = st.integers(1, 500_000)
THROUGHPUTS = st.sampled_from(fsx.THROUGHPUTS_MB_S_PER_TIB)


class TestFsx:
    @given(SIZES, THROUGHPUTS, st.booleans())
    def test_the_nearest_sizes_are_valid_and_have_nothing_valid_between_them(self, size, throughput, efa):
        assume(not fsx.valid_size(size, throughput, efa))
        low, high = fsx.nearest(size, throughput, efa)
        assert fsx.valid_size(low, throughput, efa)
        assert fsx.valid_size(high, throughput, efa)
        assert low < high
        assert low < size < high or size < low
        step = 1200
        assert not any(fsx.valid_size(between, throughput, efa) for between in range(low + step, high, step))

    @given(SIZES, THROUGHPUTS)
    def test_what_fits_efa_fits_without(self, size, throughput):
        if fsx.valid_size(size, throughput, efa=True):
            assert fsx.valid_size(size, throughput, efa=False)
            assert size >= fsx.efa_minimum_gib(throughput)

    @pytest.mark.parametrize(
        ("throughput", "minimum"),
        # FSx for Lustre user guide, EFA-enabled file systems (2026).
        [(125, 38400), (250, 19200), (500, 9600), (1000, 4800)],
    )
    def test_the_smallest_efa_file_system(self, throughput, minimum):
        assert fsx.efa_minimum_gib(throughput) == minimum
        assert fsx.valid_size(minimum, throughput, efa=True)
        assert not fsx.valid_size(minimum // 2, throughput, efa=True)

    def test_no_choice_exports_deletions(self):
        assert not [choice for choice, events in fsx.EXPORT_EVENTS.items() if "DELETED" in events]

    @pytest.mark.parametrize(("size", "valid"), [(1200, True), (2400, True), (3600, False), (4800, True), (0, False)])
    def test_sizes_without_efa(self, size, valid):
        assert fsx.valid_size(size, 250, efa=False) is valid


class TestLifecycle:
    @pytest.mark.parametrize("purpose", lifecycle.PURPOSES)
    def test_unfinished_uploads_and_old_versions_end(self, purpose):
        rules = lifecycle.rules(purpose, keep_data=True)
        assert any("abort_incomplete_multipart_upload" in rule for rule in rules)
        assert any("noncurrent_version_expiration" in rule for rule in rules)
        assert len({rule["id"] for rule in rules}) == len(rules)

    @pytest.mark.parametrize(("keep", "days"), [(True, 14), (False, 1)])
    def test_old_checkpoints_of_a_stack_that_keeps_nothing_go_at_once(self, keep, days):
        (rule,) = [rule for rule in lifecycle.rules("checkpoints", keep) if "noncurrent_version_expiration" in rule]
        assert rule["noncurrent_version_expiration"] == {"noncurrent_days": days}

    @pytest.mark.parametrize("purpose", ["data", "checkpoints"])
    @pytest.mark.parametrize("keep", [True, False])
    def test_data_and_checkpoints_never_expire(self, purpose, keep):
        assert not any("expiration" in rule for rule in lifecycle.rules(purpose, keep))

    def test_only_bundles_of_the_results_bucket_expire(self):
        expiring = [rule for rule in lifecycle.rules("results", keep_data=True) if "expiration" in rule]
        assert [rule["filter"] for rule in expiring] == [{"prefix": lifecycle.BUNDLES_PREFIX}]

    def test_files_on_their_way_to_nodes_are_gone_after_a_day(self):
        """Also where data is kept: they may hold module arguments."""
        rules = lifecycle.rules("transfer", keep_data=True)
        assert {"days": 1} in [rule.get("expiration") for rule in rules if rule["filter"] == {"prefix": ""}]

    def test_another_bucket_is_a_programming_error(self):
        with pytest.raises(KeyError):
            lifecycle.rules("scratch", keep_data=True)


CLUSTERS = st.from_regex(r"[a-z](-?[a-z0-9]){2,60}", fullmatch=True)


class TestNames:
    @given(CLUSTERS, st.sampled_from(["us-east-1", LONGEST_REGION, "us-gov-west-1", ""]))
    def test_a_name_that_fits_gives_names_that_aws_takes(self, cluster, region):
        assume(not too_long(cluster, region))
        plan = names(cluster, Place("aws", region or LONGEST_REGION, "123456789012"), "use1-az4")
        buckets = [
            plan.data_bucket,
            plan.checkpoints_bucket,
            plan.results_bucket,
            plan.express_bucket,
            plan.trail_bucket,
        ]
        assert all(3 <= len(bucket) <= 63 for bucket in buckets)
        roles = [plan.node_role, plan.head_role, plan.flow_log_role, *plan.function_roles.values()]
        assert all(len(role) <= 64 for role in roles)
        assert all(len(function) <= 64 for function in plan.functions.values())
        assert plan.express_bucket.endswith("--use1-az4--x-s3")

    @given(CLUSTERS)
    def test_the_length_that_an_error_names_fits(self, cluster):
        for wanted in too_long(cluster, "us-east-1"):
            most = int(wanted.split()[2])
            assert most < len(cluster)
        if too_long(cluster, "us-east-1"):
            least = min(int(wanted.split()[2]) for wanted in too_long(cluster, "us-east-1"))
            assert too_long(cluster[:least], "us-east-1") == []
            assert too_long(cluster[: least + 1], "us-east-1") != []

    def test_an_error_names_what_is_too_long(self):
        (wanted, *_) = too_long("a" * 40, "us-east-1")
        assert wanted.startswith("at most ")
        assert "characters of 63" in wanted

    @given(CLUSTERS, CLUSTERS)
    def test_two_clusters_share_no_name(self, one, two):
        assume(one != two)
        place = Place("aws", "us-east-1", "123456789012")
        first, second = names(one, place, "use1-az4"), names(two, place, "use1-az4")
        for item in fields(Names):
            assert getattr(first, item.name) != getattr(second, item.name)

    def test_buckets_differ_between_accounts_and_regions(self):
        places = [
            Place("aws", "us-east-1", "1" * 12),
            Place("aws", "us-east-1", "2" * 12),
            Place("aws", "us-west-2", "1" * 12),
        ]
        for field in ("data_bucket", "checkpoints_bucket", "results_bucket", "trail_bucket"):
            assert len({getattr(names("train", place, "use1-az4"), field) for place in places}) == 3

    def test_metrics_of_a_cluster_have_a_namespace_of_their_own(self):
        assert names("train", Place("aws", "us-east-1", "1" * 12), "use1-az4").metric_namespace == "Flightline/train"
