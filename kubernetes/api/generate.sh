#!/usr/bin/env bash
# Writes the deep copies and the CRDs from the types; run by `make generate`.
set -eu
cd "$(dirname "$0")/.."
export GOWORK=off
tool=$(cd ../test/tools/controller-gen && go tool -n controller-gen)

"$tool" object crd paths=./api/... output:crd:dir=api/crds

# Two things of the stock CRDs cannot be said by a marker. The only name of an EgressFirewall, which belongs to the metadata:
sed -i '/^          metadata:$/{n;s/.*/&\n            properties:\n              name:\n                pattern: ^default$\n                type: string/}' \
	api/crds/k8s.ovn.org_egressfirewalls.yaml
# and that an address has one of two formats.
sed -i '/^ *ip:$/,/^ *type: string$/s/^\( *\)type: string$/\1anyOf:\n\1- format: ipv4\n\1- format: ipv6\n&/' \
	api/crds/network.openshift.io_dnsnameresolvers.yaml

# The default of a Domain has a list of objects, which is too long for a marker.
pending='status: Unknown, reason: Pending, message: Waiting for controller, lastTransitionTime: "1970-01-01T00:00:00Z"'
sed -i "/^          status:$/a\\            default: {conditions: [{type: Verified, $pending}, {type: ValidDomain, $pending}, {type: VerifiedDNS, $pending}]}" \
	api/crds/networking.datumapis.com_domains.yaml

# kubectl takes nothing from outside of the folder it is given.
cat api/crds/{dns.openshift.io,k8s.ovn.org,network.openshift.io}_*.yaml >../deploy/kubernetes/egress/crds.yaml
cat api/crds/nameplane.io_*.yaml >../deploy/kubernetes/service/crds.yaml
cat api/crds/networking.datumapis.com_*.yaml >../deploy/kubernetes/service/domains/crds.yaml
