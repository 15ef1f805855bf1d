#!/usr/bin/env bash
# Installs the missing packages and tools for a target of the Makefile: setup.sh test|test-all|test-gateway|bench|lint|deb|dist
set -eu
cd "$(dirname "$0")/.."
target=${1:-test}
export GOWORK=off # every module is built with its own versions

packages() { # prints program:package, or :package for a package without a program
	[ "$target" != test-gateway ] || { echo ip:iproute2 unshare:util-linux; return; }
	echo ip:iproute2 unshare:util-linux mount:mount mkfs.ext4:e2fsprogs curl:curl jq:jq faketime:faketime
	echo named:bind9 dig:bind9-dnsutils rndc:bind9-utils knotd:knot knsupdate:knot-dnsutils nsd:nsd unbound:unbound
	echo kdig:knot-dnsutils dnsdist:dnsdist
	echo pdns_server:pdns-server :pdns-backend-sqlite3 sqlite3:sqlite3 pdns_recursor:pdns-recursor kresd:knot-resolver
	echo openstack:python3-openstackclient :python3-designateclient :python3-openstacksdk
	case $target in
	test*) # the clients of docs/how-to
		echo openssl:openssl lego:lego pebble:pebble certbot:certbot :python3-certbot-dns-rfc2136 prometheus:prometheus
		echo :ansible :python3-dnspython buildah:buildah systemd-analyze:systemd
		echo kea-dhcp4:kea-dhcp4-server kea-dhcp-ddns:kea-dhcp-ddns-server perfdhcp:kea-admin
		;;
	esac
	case $target in
	test-all)
		echo ovn-northd:ovn-central ovn-controller:ovn-host ovs-vswitchd:openvswitch-switch
		echo mmdebstrap:mmdebstrap nsenter:util-linux ethtool:ethtool ping:iputils-ping
		;;
	bench) echo dnsperf:dnsperf taskset:util-linux ;;
	esac
}

missing() {
	local want program package
	for want in $(packages); do
		program=${want%%:*} package=${want#*:}
		if [ -n "$program" ]; then
			PATH="$PATH:/usr/sbin:/sbin" command -v "$program" >/dev/null || echo "$package"
		else
			dpkg -s "$package" >/dev/null 2>&1 || echo "$package"
		fi
	done
}

retry() { # runs a command up to five times, because downloads can fail temporarily
	local i
	for i in 1 2 3 4 5; do
		"$@" && return 0
		echo "try $i failed: $*" >&2
		sleep $((i * 5))
	done
	return 1
}

install() {
	if [ "$(id -u)" != 0 ]; then
		echo "the tests need these packages: $*" >&2
		echo "install them (sudo apt-get install $*) or run make $target as root" >&2
		exit 1
	fi
	export DEBIAN_FRONTEND=noninteractive
	retry apt-get update -qq
	# Packages of servers start the servers. policy-rc.d prevents that: the tests start servers on their own ports.
	local policy=/usr/sbin/policy-rc.d linked=
	printf '#!/bin/sh\nexit 101\n' >$policy.nameplane
	chmod +x $policy.nameplane
	[ -e $policy ] || { ln -s policy-rc.d.nameplane $policy && linked=1; }
	retry apt-get install -y -qq --no-install-recommends "$@"
	[ -z "$linked" ] || rm -f $policy
	rm -f $policy.nameplane
}

tool() { # NAME PACKAGE [LDFLAGS [MODULE]]: builds a program of test/tools/MODULE (default NAME), unless it is up to date
	local out=$PWD/.cache/bin/$1 module=test/tools/${4:-$1}
	[ -x "$out" ] && [ "$out" -nt "$module/go.mod" ] && return 0
	mkdir -p .cache/bin
	echo "building $1" >&2
	(cd "$module" && retry env CGO_ENABLED=0 nice -n 15 go build -trimpath -ldflags "-s -w ${3:-}" -o "$out" "$2") && touch "$out"
}

apiserver() { # downloads and builds what tests with an API server need
	(cd kubernetes && retry go mod download)
	# The version flags matter: kube-apiserver enables features by its version. The first build takes some minutes.
	local kube minor v=k8s.io/component-base/version
	kube=$(cd test/tools/kube-apiserver && retry go list -m -f '{{.Version}}' k8s.io/kubernetes)
	minor=${kube#v*.}
	tool etcd go.etcd.io/etcd/server/v3
	tool kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver "-X $v.gitVersion=$kube -X $v.gitMajor=1 -X $v.gitMinor=${minor%%.*}"
	tool kubectl k8s.io/kubernetes/cmd/kubectl "" kube-apiserver
}

kubernetes() { # downloads and builds what only the tests with Kubernetes need
	apiserver
	local client
	for client in externaldns014 externaldns certmanager boulder; do
		(cd test/clients/$client && retry go mod download)
	done
	# A test regenerates the CRDs.
	(cd test/tools/controller-gen && retry go tool -n controller-gen >/dev/null)
}

case $target in # these targets need only Go
lint)
	tool golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	exit
	;;
deb | dist)
	tool nfpm github.com/goreleaser/nfpm/v2/cmd/nfpm
	[ "$target" = deb ] || tool cyclonedx-gomod github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod
	exit
	;;
esac

need=$(missing)
if [ "$target" = test-gateway ]; then
	# shellcheck disable=SC2086
	[ -z "$need" ] || install $need
	apiserver
	tool traefik github.com/traefik/traefik/v3/cmd/traefik
	exit
fi
installing=
if [ -n "$need" ]; then # install packages while Go downloads and compiles
	# shellcheck disable=SC2086
	install $need &
	installing=$!
fi
retry go mod download
(cd test/clients && retry go mod download)
case $target in
test-all)
	tool staticcheck honnef.co/go/tools/cmd/staticcheck
	kubernetes
	tool nfpm github.com/goreleaser/nfpm/v2/cmd/nfpm
	# The clients that Debian does not have, or has without a part that a page of docs/how-to needs.
	tool dnscontrol .
	tool external-dns .
	tool lego github.com/go-acme/lego/v4/cmd/lego
	tool tofu github.com/opentofu/opentofu/cmd/tofu
	tool terraform-provider-openstack github.com/terraform-provider-openstack/terraform-provider-openstack
	;;
bench) tool coredns . ;;
esac
[ -z "$installing" ] || wait $installing
if [ "$target" = test-all ]; then
	# A minimal system of the Debian or Ubuntu release of this machine, for the test of the Debian package.
	[ -e .cache/system.tar ] || retry mmdebstrap --quiet --variant=apt --include=adduser "$(. /etc/os-release && echo "$VERSION_CODENAME")" .cache/system.tar
	# Without a later OVN its tests are skipped with a message.
	test/ovn.sh || echo "setup.sh: cannot get a later OVN: its tests are skipped" >&2
fi
