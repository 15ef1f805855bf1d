// Package v1alpha1 is the DNSNameResolver of network.openshift.io: what a name of an egress rule resolves to, who said so, and when.
//
// The wire format is that of OpenShift, so that each writer and reader of it can be ours or the stock one. Our CRD is wider in one
// place: status.resolvedNames[].dnsName may have labels with an underscore or a hyphen at either end, as names under a wildcard do.
// On a cluster with the stock CRD a writer leaves such names out one by one and lets their addresses live by leases; it must not
// let one of them fail the write of the others.
//
// +kubebuilder:object:generate=true
// +groupName=network.openshift.io
package v1alpha1
