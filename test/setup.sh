#!/usr/bin/env bash
# Installs what `make test` (or, with "bench", also `make bench`) needs and the machine does not have.
set -eu
cd "$(dirname "$0")/.."

programs() { # program:package
	echo openssl:openssl ip:iproute2 unshare:util-linux named:bind9 dig:bind9-dnsutils knotd:knot nsd:nsd unbound:unbound pdns_server:pdns-server sqlite3:sqlite3 openstack:python3-openstackclient curl:curl mount:mount
	echo ovn-northd:ovn-central ovn-controller:ovn-host ovs-vswitchd:openvswitch-switch nsenter:util-linux ethtool:ethtool ping:iputils-ping
	echo pdns_recursor:pdns-recursor kresd:knot-resolver rndc:bind9-utils
	[ "${1:-test}" = bench ] && echo dnsperf:dnsperf taskset:util-linux
	return 0
}

missing() {
	local want pkg
	for want in $(programs "${1:-test}"); do
		pkg=${want#*:}
		PATH="$PATH:/usr/sbin:/sbin" command -v "${want%%:*}" >/dev/null || echo "$pkg"
	done
	# The plugin that gives the openstack command its zone verbs has no command of its own.
	dpkg -s python3-designateclient >/dev/null 2>&1 || echo python3-designateclient
	# Nor has the backend of PowerDNS.
	dpkg -s pdns-backend-sqlite3 >/dev/null 2>&1 || echo pdns-backend-sqlite3
}

retry() { # a registry that is busy now may not be in a moment
	local i
	for i in 1 2 3 4 5; do
		"$@" && return 0
		echo "try $i failed: $*" >&2
		sleep $((i * 5))
	done
	return 1
}

need=$(missing "${1:-test}")
if [ -n "$need" ]; then
	if [ "$(id -u)" != 0 ]; then
		echo "the tests need these packages:" $need >&2
		echo "install them (sudo apt-get install" $need") or run make test as root" >&2
		exit 1
	fi
	export DEBIAN_FRONTEND=noninteractive
	retry apt-get update -qq
	# Packages of servers start them; here the tests start their own, on their own ports.
	printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d.nameplane
	chmod +x /usr/sbin/policy-rc.d.nameplane
	[ -e /usr/sbin/policy-rc.d ] || { ln -s policy-rc.d.nameplane /usr/sbin/policy-rc.d; linked=1; }
	# shellcheck disable=SC2086
	retry apt-get install -y -qq --no-install-recommends $need
	[ -z "${linked:-}" ] || rm -f /usr/sbin/policy-rc.d
	rm -f /usr/sbin/policy-rc.d.nameplane
fi

retry go mod download
(cd kubernetes && retry go mod download)
(cd test/clients && retry go mod download)

export GOWORK=off # each program below is a module that go.work does not name

tool() { # name package [ldflags]: builds a program from the module test/tools/NAME, unless it is there and newer than its versions
	local out=$PWD/.cache/bin/$1
	[ -x "$out" ] && [ "$out" -nt "test/tools/$1/go.mod" ] && return 0
	mkdir -p .cache/bin
	echo "building $1" >&2
	(cd "test/tools/$1" && retry env CGO_ENABLED=0 nice -n 15 go build -trimpath -ldflags "-s -w ${3:-}" -o "$out" "$2") && touch "$out"
}

# A kube-apiserver that does not know its version has other features. Some minutes when nothing of it was ever compiled here.
kube=$(cd test/tools/kube-apiserver && retry go list -m -f '{{.Version}}' k8s.io/kubernetes)
minor=${kube#v*.}
v=k8s.io/component-base/version
tool etcd go.etcd.io/etcd/server/v3
tool kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver "-X $v.gitVersion=$kube -X $v.gitMajor=1 -X $v.gitMinor=${minor%%.*}"

# A test generates the CRDs again.
(cd test/tools/controller-gen && retry go tool -n controller-gen >/dev/null)
tool staticcheck honnef.co/go/tools/cmd/staticcheck

# Without it the tests with a later OVN are skipped, and say so.
test/ovn.sh || echo "there is no later OVN to test with" >&2

if [ "${1:-test}" = bench ] && [ ! -x .cache/bin/coredns ]; then
	mkdir -p .cache/bin
	(cd test/tools/coredns && retry go build -o ../../../.cache/bin/coredns .)
fi
