#!/bin/sh
# Judge this node once per boot and tell its Auto Scaling group: CONTINUE for go, ABANDON for everything else.
# When even that cannot be told, the launch hook runs into its time limit, whose result is ABANDON as well.
set -u
umask 077
. "${FLIGHTLINE_BOOT_ENV:-/etc/flightline/boot.env}"
state=${FLIGHTLINE_STATE:-/var/lib/flightline}
log=${FLIGHTLINE_LOG:-/var/log/flightline}
metadata=${FLIGHTLINE_METADATA:-http://169.254.169.254}
pause=${FLIGHTLINE_PAUSE_S:-5}
package=$state/flightline-node-$PACKAGE_SHA256.pyz
bundle=$state/boot-bundle
record=$state/boot-record.json
export AWS_DEFAULT_REGION="$REGION" PYTHONDONTWRITEBYTECODE=1

say() {
    echo "flightline-boot: $*"
}

again() {
    for attempt in 1 2 3 4 5; do
        "$@" && return 0
        [ "$attempt" -lt 5 ] && sleep "$pause"
    done
    return 1
}

identity() {
    token=$(curl -fsS -m 5 -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 300' "$metadata/latest/api/token") || return 1
    instance=$(curl -fsS -m 5 -H "X-aws-ec2-metadata-token: $token" "$metadata/latest/meta-data/instance-id") || return 1
    [ -n "$instance" ]
}

matches() {
    [ -f "$package" ] && echo "$PACKAGE_SHA256  $package" | sha256sum --check --status
}

fetch() {
    matches && return 0
    again aws s3 cp --only-show-errors "$PACKAGE_URL" "$package" || { say "saw no node package at $PACKAGE_URL"; return 1; }
    matches && return 0
    say "saw a node package with another checksum; wanted $PACKAGE_SHA256; it is not run"
    rm -f "$package"
    return 1
}

judge() {
    rm -rf "$bundle" "$record"
    timeout -k 30 "$LIMIT_S" python3 "$package" --instance-type "$INSTANCE_TYPE" --instance-id "$instance" \
        --run "boot-$instance-$(date -u +%Y%m%dT%H%M%SZ)" --level "$LEVEL" --skip "$SKIP" ${EXPECT:+--expect "$EXPECT"} \
        --bundle "$bundle" --record "$record" --log "$log/records.jsonl"
}

publish() {
    [ -n "$RESULTS_URL" ] || return 0
    target=$RESULTS_URL/boot/$instance/$(date -u +%Y%m%dT%H%M%SZ)
    [ ! -f "$record" ] || again aws s3 cp --only-show-errors "$record" "$target/record.json" || say "the record was not kept"
    [ "$1" = CONTINUE ] || [ ! -d "$bundle" ] ||
        again aws s3 cp --only-show-errors --recursive "$bundle" "$target/bundle" || say "the bundle was not kept"
}

awaited() {
    # After the first go the hook is over: a later boot has nobody to tell.
    [ -n "$GROUP" ] && [ ! -f "$state/in-service-$instance" ]
}

restart_clock() {
    # The hook's time has been running since launch: a slow boot must not cost a good node its place.
    awaited || return 0
    aws autoscaling record-lifecycle-action-heartbeat --auto-scaling-group-name "$GROUP" --lifecycle-hook-name "$HOOK" \
        --instance-id "$instance" || say "the hook's time limit could not be started anew"
}

complete() {
    awaited || return 0
    say "telling group $GROUP: $1"
    again aws autoscaling complete-lifecycle-action --auto-scaling-group-name "$GROUP" --lifecycle-hook-name "$HOOK" \
        --instance-id "$instance" --lifecycle-action-result "$1" || { say "the group could not be told"; return 1; }
    [ "$1" != CONTINUE ] || touch "$state/in-service-$instance"
}

mkdir -p "$state" "$log"
again identity || { say "no answer from the metadata service; the hook will time out and the node be replaced"; exit 2; }
restart_clock
if ! fetch; then
    complete ABANDON
    exit 2
fi
judge
status=$?
case $status in
    0) result=CONTINUE ;;
    *) result=ABANDON ;;
esac
[ "$status" -lt 124 ] || say "no verdict within $LIMIT_S s"
say "exit status $status (0 go, 1 no-go, else no verdict): $result"
# The group first: a slow upload must not run into the hook's time limit.
complete "$result" || status=2
publish "$result"
exit "$status"
