"""Ways to break one thing on a host: how it is done, how it is put back, and how to see that it is whole again."""

import re
import shlex
from dataclasses import dataclass

KEPT = "/run/kept"


@dataclass(frozen=True)
class Mutation:
    """`test` is file::function. `whole` ends with 0 when the host is as before; the commands run as root."""

    test: str
    what: str
    break_it: str
    restore: str
    whole: str
    left: str = ""
    """Why `make configure` leaves it; empty when the roles repair it."""


def _slot(path: str) -> str:
    return f"{KEPT}/{re.sub(r'[^A-Za-z0-9]', '_', path)}"


def _changed(test: str, what: str, path: str, command: str, left: str, then: str) -> Mutation:
    slot = _slot(path)
    after = f" && {then}" if then else ""
    change = f"mkdir -p {KEPT} && cp -a {path} {slot} && {command}{after}"
    back = f"if [ -e {slot} ]; then cp -a --remove-destination {slot} {path} && rm {slot}{after}; fi"
    same = f"cmp -s {slot} {path} && [ \"$(stat -c '%a %u %g' {slot})\" = \"$(stat -c '%a %u %g' {path})\" ]"
    return Mutation(test, what, change, back, same, left)


def edit(test: str, path: str, expression: str, left: str = "", then: str = "") -> Mutation:
    """Change a file with sed."""
    return _changed(test, f"{path}: {expression}", path, f"sed -i {shlex.quote(expression)} {path}", left, then)


def append(test: str, path: str, line: str, left: str = "", then: str = "") -> Mutation:
    """Add a line to a file."""
    command = f"printf '%s\\n' {shlex.quote(line)} >> {path}"
    return _changed(test, f"{path}: a line added: {line}", path, command, left, then)


def replace(test: str, path: str, text: str, left: str = "", then: str = "") -> Mutation:
    """Give a file another content; its mode stays."""
    what = f"{path} replaced by {text.replace(chr(10), '; ') or 'nothing'}"
    return _changed(test, what, path, f"printf '%s\\n' {shlex.quote(text)} > {path}", left, then)


def empty(test: str, path: str, left: str = "") -> Mutation:
    """Take the content of a file away."""
    return _changed(test, f"{path} emptied", path, f": > {path}", left, "")


def mode(test: str, path: str, bits: str = "0666", left: str = "") -> Mutation:
    """Change a file's mode."""
    slot = _slot(path)
    change = f"mkdir -p {KEPT} && stat -c %a {path} > {slot} && chmod {bits} {path}"
    same = f"[ $(stat -c %a {path}) = $(cat {slot}) ]"
    return Mutation(test, f"{path}: mode {bits}", change, f"chmod $(cat {slot}) {path}", same, left)


def add(test: str, path: str, text: str, left: str, then: str = "", bits: str = "0644") -> Mutation:
    """Put a stranger's file on the host."""
    after = f" && {then}" if then else ""
    shown = text.strip().replace("\n", "; ")
    write = f"! test -e {path} && mkdir -p $(dirname {path}) && printf '%s\\n' {shlex.quote(text)} > {path} && chmod {bits} {path}"
    return Mutation(test, f"{path} added: {shown}", write + after, f"rm -f {path}{after}", f"! test -e {path}", left)


def gone(test: str, path: str, left: str = "") -> Mutation:
    """Take a file or directory away."""
    slot = _slot(path)
    aside = f"mkdir -p {KEPT} && cp -a {path} {slot} && rm -r {path}"
    back = f"if ! test -e {path}; then cp -a {slot} {path}; fi; rm -rf {slot}"
    return Mutation(test, f"{path} removed", aside, back, f"test -e {path}", left)


def stop(test: str, unit: str, left: str = "") -> Mutation:
    """Stop a unit."""
    ask = f"systemctl is-active --quiet {unit}"
    return Mutation(test, f"{unit} stopped", f"systemctl stop {unit}", f"systemctl start {unit}", ask, left)


def disable(test: str, unit: str, left: str = "") -> Mutation:
    """Disable a unit."""
    ask = f"systemctl is-enabled --quiet {unit}"
    do = "systemctl {} --quiet " + unit
    return Mutation(test, f"{unit} disabled", do.format("disable"), do.format("enable"), ask, left)


def mask(test: str, unit: str, left: str = "") -> Mutation:
    """Mask a unit that is not a file of /etc."""
    ask = f"[ $(systemctl show --property=LoadState --value {unit}) = loaded ]"
    do = "systemctl {} --quiet " + unit
    return Mutation(test, f"{unit} masked", do.format("mask"), do.format("unmask"), ask, left)


def dropin(test: str, unit: str, text: str, left: str = "") -> Mutation:
    """A drop-in that changes a unit."""
    path = f"/etc/systemd/system/{unit}.d/zz-site.conf"
    clear = f"rm -f {path}; rmdir --ignore-fail-on-non-empty $(dirname {path}) 2>/dev/null; systemctl daemon-reload"
    one = add(test, path, text, left, "systemctl daemon-reload")
    return Mutation(test, one.what, one.break_it, clear, one.whole, left)


def remove(test: str, package: str, left: str = "") -> Mutation:
    """Remove a package."""
    slot = _slot(package)
    install = "DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet --allow-downgrades"
    ask = f"dpkg-query -W -f '${{db:Status-Abbrev}}' {package} 2>/dev/null | grep -q '^.i'"
    away = f"dpkg-query -W -f '${{Version}}' {package} > {slot} && dpkg --remove --force-depends {package}"
    back = f"{ask} || {install} {package}=$(cat {slot})"
    return Mutation(test, f"package {package} removed", f"mkdir -p {KEPT} && {away}", back, ask, left)


def mount(test: str, source: str, path: str, left: str) -> Mutation:
    """A bind mount over a file."""
    put, gone = f"mount --bind {source} {path}", f"! mountpoint -q {path} && ! findmnt {path} >/dev/null"
    return Mutation(test, f"{source} mounted over {path}", put, f"umount {path}", gone, left)
