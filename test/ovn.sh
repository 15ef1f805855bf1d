#!/usr/bin/env bash
# Brings a later OVN than this release of Debian has into .cache/ovn, for tests and measures (NAMEPLANE_OVN): programs of the next
# release, with the libraries that they were made for. Nothing is installed, and it needs no root.
set -eu
cd "$(dirname "$0")/.."
out=$PWD/.cache/ovn
release=trixie
libraries="libc6 libgcc-s1 libcap-ng0 libssl3t64 libunbound8 libbpf1 libnuma1 libxdp1 libelf1t64 zlib1g libzstd1 libnghttp2-14 libevent-2.1-7t64 libudev1 libcap2"
packages="ovn-central ovn-host ovn-common openvswitch-switch openvswitch-common"

[ -x "$out/bin/ovn-northd" ] && exit 0
[ "$(dpkg --print-architecture)" = amd64 ] || { echo "ovn.sh: it knows the folders of amd64 only" >&2; exit 1; }

# The place that this machine has its packages from has those of the next release, too.
mirror=$(apt-get indextargets --format '$(ORIGIN) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Component: main' |
	awk '$3 !~ /security/ {print $3; exit}')
[ -n "$mirror" ] || { echo "ovn.sh: no Debian among this machine's sources" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{lists/partial,cache/archives/partial,debs}
echo "deb $mirror $release main" >"$work/sources.list"
: >"$work/status"
apt() { # with a state of its own, so that the machine's stays as it is
	apt-get -qq -o Dir::State::Lists="$work/lists" -o Dir::State::status="$work/status" -o Dir::Cache="$work/cache" -o Dir::Etc::SourceList="$work/sources.list" \
		-o Dir::Etc::SourceParts=/dev/null -o Acquire::Retries=3 -o Acquire::Languages=none -o APT::Sandbox::User= "$@"
}
apt update
# shellcheck disable=SC2086
(cd "$work/debs" && apt download $packages $libraries)

rm -rf "$out"
mkdir -p "$out/bin"
for deb in "$work"/debs/*.deb; do
	dpkg -x "$deb" "$out/root"
done
# Each program is started by the loader of its own C library.
for path in usr/bin/ov{n,s}-* usr/bin/ovsdb-* usr/sbin/ov* usr/lib/openvswitch-switch/ovs-vswitchd; do
	for program in "$out"/root/$path; do
		[ "$(head -c 4 "$program" 2>/dev/null | tail -c 3)" = ELF ] || continue
		name=${program##*/}
		cat >"$out/bin/$name" <<-END
			#!/bin/sh
			root=\${0%/*}/../root
			exec "\$root/usr/lib64/ld-linux-x86-64.so.2" --library-path "\$root/usr/lib/x86_64-linux-gnu" --argv0 $name "\$root/${program#"$out"/root/}" "\$@"
		END
		chmod +x "$out/bin/$name"
	done
done
ln -sfn root/usr/share "$out/share"
"$out/bin/ovn-northd" --version | head -1
