"""Batch writes against a client that refuses in every way: nothing is lost, nothing is asked for twice in vain."""

import pytest

from flightline.cloud.batches import NotWrittenError, RetryPolicy, put_new, throttled, write_all


class Refused(Exception):
    """Shaped like botocore's ClientError."""

    def __init__(self, code, status=400):
        self.response = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}


def retry(attempts=5):
    waits = []
    return RetryPolicy(attempts=attempts, sleep=waits.append, jitter=lambda: 1.0), waits


def item(number):
    return {"pk": {"S": "p"}, "sk": {"S": str(number)}, "n": {"N": str(number)}}


class Table:
    """Takes batches; `script` says per call what to refuse: an error, or how many items to leave unprocessed."""

    def __init__(self, *script):
        self.script, self.calls, self.there = list(script), [], {}

    def batch_write_item(self, RequestItems):
        ((name, requests),) = RequestItems.items()
        self.calls.append(len(requests))
        step = self.script.pop(0) if self.script else 0
        if isinstance(step, Exception):
            raise step
        kept = len(requests) - step
        for request in requests[:kept]:
            self.there[request["PutRequest"]["Item"]["sk"]["S"]] = request["PutRequest"]["Item"]
        return {"UnprocessedItems": {name: requests[kept:]} if step else {}}

    def put_item(self, TableName, Item, ConditionExpression):
        assert ConditionExpression == "attribute_not_exists(pk)"
        if Item["sk"]["S"] in self.there:
            raise Refused("ConditionalCheckFailedException")
        self.there[Item["sk"]["S"]] = Item


@pytest.mark.parametrize(("count", "calls"), [(0, 0), (1, 1), (25, 1), (26, 2), (1000, 40)])
def test_25_items_to_a_request(count, calls):
    table = Table()
    stats = write_all(table, "t", map(item, range(count)), retry()[0])
    assert (stats.items, stats.calls, stats.retries, len(table.there)) == (count, calls, 0, count)


def test_unprocessed_items_are_sent_again_alone_and_later_and_later():
    table, (quick, waits) = Table(20, 5, 0), retry()
    stats = write_all(table, "t", map(item, range(25)), quick)
    assert table.calls == [25, 20, 5] and len(table.there) == 25
    assert stats.retries == 2 and waits == [0.05, 0.1]


@pytest.mark.parametrize("refusal", [("ProvisionedThroughputExceededException", 400), ("whatever", 503)])
def test_a_throttled_batch_is_botocore_s_to_repeat_and_handed_back_when_it_gave_up(refusal):
    table, (quick, waits) = Table(0, Refused(*refusal)), retry()
    with pytest.raises(NotWrittenError, match=rf"t: 5 items not written \({refusal[0]}\)") as caught:
        write_all(table, "t", map(item, range(30)), quick)
    assert len(table.there) == 25 and len(caught.value.left) == 5 and waits == []


def test_what_is_refused_to_the_end_is_handed_back():
    table = Table(24, 23, 22, 21, 20)
    with pytest.raises(NotWrittenError, match="t: 20 items not written: left unprocessed 5 times") as caught:
        write_all(table, "t", map(item, range(25)), retry()[0])
    assert {row["sk"]["S"] for row in caught.value.left} | set(table.there) == {str(n) for n in range(25)}


def test_an_error_that_waiting_does_not_mend_is_raised_at_once():
    table, (quick, waits) = Table(Refused("AccessDeniedException")), retry()
    with pytest.raises(Refused):
        write_all(table, "t", [item(1)], quick)
    assert len(table.calls) == 1 and waits == []


def test_a_key_twice_in_one_request_is_sent_once():
    table = Table()
    assert write_all(table, "t", [item(1), item(1), item(2)], retry()[0]).items == 2


def test_put_new_keeps_what_is_there():
    table = Table()
    assert put_new(table, "t", item(1)) is True
    assert put_new(table, "t", {**item(1), "n": {"N": "99"}}) is False
    assert table.there["1"]["n"] == {"N": "1"}


def test_what_the_same_request_may_not_meet_later():
    assert throttled(Refused("Throttling")) and throttled(Refused("whatever", 503))
    assert not throttled(ValueError("x")) and not throttled(Refused("ValidationException"))


def test_waits_are_bounded():
    table, (quick, waits) = Table(*[1] * 12), retry(12)
    with pytest.raises(NotWrittenError):
        write_all(table, "t", [item(1)], quick)
    assert max(waits) == 5.0
