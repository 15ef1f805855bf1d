#!/usr/bin/env bash
# Unpacks OVN of the next Debian release, with its libraries, into .cache/ovn. Tests and benchmarks use it with
# NAMEPLANE_OVN. The script installs nothing and needs no root.
set -eu
cd "$(dirname "$0")/.."
out=$PWD/.cache/ovn
release=trixie
libraries="libc6 libgcc-s1 libcap-ng0 libssl3t64 libunbound8 libbpf1 libnuma1 libxdp1 libelf1t64 zlib1g libzstd1 libnghttp2-14 libevent-2.1-7t64 libudev1 libcap2"
packages="ovn-central ovn-host ovn-common openvswitch-switch openvswitch-common"

[ -x "$out/bin/ovn-northd" ] && exit 0
[ "$(dpkg --print-architecture)" = amd64 ] || { echo "ovn.sh: supports only amd64" >&2; exit 1; }

# The Debian mirror of this machine also has the packages of the next release.
mirror=$(apt-get indextargets --format '$(ORIGIN) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Component: main' |
	awk '$3 !~ /security/ {print $3; exit}')
[ -n "$mirror" ] || { echo "ovn.sh: the apt sources of this machine have no Debian mirror" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{lists/partial,cache/archives/partial,debs}
echo "deb $mirror $release main" >"$work/sources.list"
: >"$work/status"
apt() { # with its own state directory: the state of the machine does not change
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
# A wrapper starts each program with the loader of the unpacked C library.
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
