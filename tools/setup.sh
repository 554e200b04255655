#!/bin/sh
# Installs what is missing of the named groups of tools/packages.txt, with apt, as root or with sudo:
#   tools/setup.sh build optional
# Where all is there it says nothing, asks no server and returns at once.
set -eu
cd "$(dirname "$0")"

if ! command -v dpkg-query >/dev/null; then
  echo "setup: no dpkg here; please see to it that what tools/packages.txt lists is installed" >&2
  exit 0
fi

# The packages of a group that dpkg lacks.
missing() {
  for package in $(awk -v group="$1" '$1 == group { print $2 }' packages.txt); do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || echo "$package"
  done
}

# Whether apt knows the package.
known() {
  apt-cache policy "$1" | grep -q 'Candidate: [^(]'
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# An optional package that apt has not heard of, though its lists are there, is no reason to ask again.
wanted=
for group in "$@"; do
  for package in $(missing "$group"); do
    if [ "$group" != optional ] || known "$package" || ! known g++; then wanted="$wanted $package"; fi
  done
done
[ -n "$wanted" ] || exit 0

echo "setup: installing with apt:$wanted"
as_root apt-get update -qq
install=
for package in $wanted; do
  if known "$package"; then
    install="$install $package"
  elif grep -q "^optional $package\$" packages.txt; then
    echo "setup: apt does not know $package; going on without it"
  else
    echo "setup: apt does not know $package: please add a package source that has it (LLVM 22 for Debian 12)" >&2
    exit 1
  fi
done
[ -n "$install" ] || exit 0
as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $install >/dev/null
echo "setup: done"
