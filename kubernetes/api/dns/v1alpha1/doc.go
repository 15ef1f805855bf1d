// Package v1alpha1 has the EgressFirewallDNSName of dns.openshift.io, the older form of a DNSNameResolver, which shows
// whether the switches have an address yet. It is a mirror that the manager maintains on request. Start with
// EgressFirewallDNSName in types.go.
//
// +kubebuilder:object:generate=true
// +groupName=dns.openshift.io
package v1alpha1
