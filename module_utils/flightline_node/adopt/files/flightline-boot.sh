#!/bin/sh
# Written by Flightline: by the user data of a stack, and by the role flightline_node.
# Judge this node once per boot by /etc/flightline/node.json. A node of a stack (boot.env) fetches the library before, and
# leaves its word in S3: CONTINUE for go, ABANDON for everything else. The alert router tells the group, for a node may not.
# What an ABANDON rests on is in S3 before that word: after it the instance may be gone at any moment.
# When nobody tells the group, the launch hook runs into its time limit, whose result is ABANDON as well.
set -u
umask 077
stack=${FLIGHTLINE_BOOT_ENV:-/etc/flightline/boot.env}
settings=${FLIGHTLINE_SETTINGS:-/etc/flightline/node.json}
PACKAGE_URL='' GROUP='' RESULTS_URL='' INSTANCE_TYPE='' LEVEL='' LIMIT_S=${FLIGHTLINE_LIMIT_S:-900} instance=''
[ ! -f "$stack" ] || . "$stack"
state=${FLIGHTLINE_STATE:-/var/lib/flightline}
log=${FLIGHTLINE_LOG:-/var/log/flightline}
metadata=${FLIGHTLINE_METADATA:-http://169.254.169.254}
pause=${FLIGHTLINE_PAUSE_S:-5}
call_s=${FLIGHTLINE_CALL_S:-30}
bundle_s=${FLIGHTLINE_BUNDLE_S:-300}
answer_s=${FLIGHTLINE_ANSWER_S:-20}
rounds=${FLIGHTLINE_ROUNDS:-60}
bundle=$state/boot-bundle
record=$state/boot-record.json
outcome=$state/boot-outcome.json
export PYTHONDONTWRITEBYTECODE=1
if [ -n "$PACKAGE_URL" ]; then
    package=$state/flightline-node-$PACKAGE_SHA256.pyz
    export AWS_DEFAULT_REGION="$REGION"
else
    package=${FLIGHTLINE_PACKAGE:-/opt/flightline/flightline-node.pyz}
fi

say() {
    echo "flightline-boot: $*"
}

again() {
    for attempt in 1 2 3 4 5; do
        timeout -k 5 "$call_s" "$@" && return 0
        [ "$attempt" -lt 5 ] && sleep "$pause"
    done
    return 1
}

identity() {
    token=$(curl -fsS -m 5 -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 300' "$metadata/latest/api/token") || return 1
    instance=$(curl -fsS -m 5 -H "X-aws-ec2-metadata-token: $token" "$metadata/latest/meta-data/instance-id") || return 1
    # It becomes part of a path and of JSON.
    case $instance in i-*[!0-9a-f]*) return 1 ;; i-?*) ;; *) return 1 ;; esac
    [ -z "$OTHER_TYPES" ] && return 0
    # Of several types it is judged as the one it is; one that was not asked for is judged as the wanted one, and fails.
    kind=$(curl -fsS -m 5 -H "X-aws-ec2-metadata-token: $token" "$metadata/latest/meta-data/instance-type") || return 1
    case ,$OTHER_TYPES, in *,"$kind",*) INSTANCE_TYPE=$kind ;; esac
}

known() {
    for attempt in 1 2 3 4 5; do
        identity && return 0
        [ "$attempt" -lt 5 ] && sleep "$pause"
    done
    return 1
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

obtain() {
    # url, file, checksum
    again aws s3 cp --only-show-errors "$1" "$2" && echo "$3  $2" | sha256sum --check --status && return 0
    say "saw nothing at $1, or with another checksum than $3"
    rm -f "$2"
    return 1
}

inventory() {
    printf '{"all": {"children": {"aws_ec2": {"hosts": {"%s": %s}}, "gpu_nodes": {"hosts": {"%s": {}}}}}}\n' "$instance" \
        "{\"ansible_connection\": \"local\", \"ansible_become\": false, \"ansible_python_interpreter\": \"{{ ansible_playbook_python }}\", \"instance_id\": \"$instance\", \"instance_type\": \"$INSTANCE_TYPE\"}" \
        "$instance"
}

apply_roles() {
    cd "$1" || return 1
    env HOME=/root LC_ALL=C.UTF-8 PYTHONPATH="$1:$1/module_utils:$1/python" ANSIBLE_HOME="$state/ansible" \
        ANSIBLE_CONFIG="$1/ansible.cfg" ANSIBLE_COLLECTIONS_PATH="$1/collections" ANSIBLE_NOCOLOR=1 \
        timeout -k 60 "$CONFIGURE_S" python3 -m ansible playbook -i inventory/node.yml -i inventory/roles.yml playbooks/node.yml
}

configure() {
    # The same roles as by hand, from the bundle whose checksum the launch template has. Once: later changes come by hand.
    done=$state/configured-$ROLES_SHA256-$VARIABLES_SHA256
    [ -n "$ROLES_URL" ] && [ ! -f "$done" ] || return 0
    site=$state/site
    rm -rf "$site"
    mkdir -p "$site"
    trouble=no-roles
    obtain "$ROLES_URL" "$state/roles.tar.gz" "$ROLES_SHA256" && tar -xzf "$state/roles.tar.gz" --no-same-owner -C "$site" &&
        obtain "$VARIABLES_URL" "$site/inventory/group_vars/aws_ec2/stack.json" "$VARIABLES_SHA256" || return 1
    trouble=not-configured
    inventory >"$site/inventory/node.yml"
    (apply_roles "$site") >"$log/configure.log" 2>&1
    applied=$?
    [ "$applied" -eq 0 ] && touch "$done" && return 0
    case $applied in 124 | 137) trouble=configure-timeout ;; esac
    say "the roles ended with $applied: $log/configure.log"
    mkdir -p "$bundle" && cp "$log/configure.log" "$bundle/"
    return 1
}

judge() {
    timeout -k 30 "$LIMIT_S" python3 "$package" check --settings "$settings" ${instance:+--instance-id "$instance"} \
        ${INSTANCE_TYPE:+--instance-type "$INSTANCE_TYPE"} ${LEVEL:+--level "$LEVEL"} ${RESULTS_URL:+--bundle "$bundle"} \
        --run "boot-${instance:-$(uname -n)}-$started" --record "$record" --log "$log/records.jsonl"
}

awaited() {
    # After the first go the hook is over: a later boot has nobody to tell.
    [ -n "$GROUP" ] && [ ! -f "$state/in-service-$instance" ]
}

keep() {
    # result, reason. The outcome comes last: whoever is told by it finds the rest there.
    kept=false
    if [ -s "$record" ]; then
        again aws s3 cp --only-show-errors "$record" "$target/record.json" && kept=true || say "the record was not kept"
    fi
    printf '{"schema":"flightline-boot/1","instance_id":"%s","instance_type":"%s","result":"%s","reason":"%s","status":%d,"first":%s,"record":%s}\n' \
        "$instance" "$INSTANCE_TYPE" "$1" "$2" "$status" "$first" "$kept" >"$outcome"
    # Without its record a go is none: better said in the next round.
    [ "$1 $kept" != "CONTINUE false" ] || return 1
    again aws s3 cp --only-show-errors "$outcome" "$target/outcome.json" || say "the outcome was not kept"
}

told() {
    # The router's answer: it has told the group.
    for look in 1 2 3; do
        sleep "$answer_s"
        timeout -k 5 "$call_s" aws s3 cp --only-show-errors "$target/told.json" "$state/told.json" 2>/dev/null && return 0
    done
    return 1
}

leave() {
    # result, reason. An event may be lost and a function away: the word is left again until it is answered.
    [ -n "$RESULTS_URL" ] || return 0
    # By its ARN: IAM lets a node write there and under no other.
    target=$RESULTS_URL/$instance/$started
    if [ "$1" != CONTINUE ] && [ -d "$bundle" ]; then
        timeout -k 5 "$bundle_s" aws s3 cp --only-show-errors --recursive "$bundle" "$target/bundle" ||
            say "the bundle was not kept"
    fi
    awaited || { keep "$1" "$2"; return 0; }
    while [ "$rounds" -gt 0 ]; do
        say "group $GROUP waits for this node: $1"
        keep "$1" "$2" && told && return 0
        rounds=$((rounds - 1))
    done
    say "no answer: the group was not told, or the answer is lost"
    return 1
}

heard() {
    # The answer to an earlier go that this node did not live to hear: the group has it in service.
    [ -s "$state/go-$instance" ] && awaited || return 0
    target=$(cat "$state/go-$instance")
    (answer_s=0; told) && touch "$state/in-service-$instance"
}

go() {
    ! awaited || [ -s "$record" ] || { status=2; no_go no-verdict; }
    ! awaited || echo "$RESULTS_URL/$instance/$started" >"$state/go-$instance"
    leave CONTINUE go || exit 2
    ! awaited || touch "$state/in-service-$instance"
    exit 0
}

no_go() {
    say "exit status $status ($1)"
    leave ABANDON "$1" || status=2
    exit "$status"
}

mkdir -p "$state" "$log"
# A clock that is not set yet may say the same at two boots.
started=$(date -u +%Y%m%dT%H%M%SZ)-$$ status=2
rm -rf "$bundle" "$record" "$outcome"
first=false
if [ -n "$PACKAGE_URL" ]; then
    known || { say "no answer from the metadata service; the hook will time out and the node be replaced"; exit 2; }
    heard
    awaited && first=true
    fetch || no_go no-package
    configure || no_go "$trouble"
fi
judge
status=$?
case $status in
    0) go ;;
    1) no_go no-go ;;
    124 | 137) say "no verdict within $LIMIT_S s"; no_go timeout ;;
    *) no_go no-verdict ;;
esac
