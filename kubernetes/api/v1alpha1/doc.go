// Package v1alpha1 has the DNSNameResolver of network.openshift.io: the addresses of a name in egress rules, with the
// lookups that returned them. Start with DNSNameResolver in types.go.
//
// The wire format is that of OpenShift, so that each writer and reader can be ours or the stock one. Our CRD accepts
// more in one field: the labels in status.resolvedNames[].dnsName may have underscores, or a hyphen at either end, as
// names below a wildcard do. On a cluster with the stock CRD, a writer must omit each such name, whose addresses are
// then allowed by leases only. It must not let one of them fail the write of the others.
//
// +kubebuilder:object:generate=true
// +groupName=network.openshift.io
package v1alpha1
