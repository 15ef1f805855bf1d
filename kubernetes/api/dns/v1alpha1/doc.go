// Package v1alpha1 is the EgressFirewallDNSName of dns.openshift.io, the older form of a DNSNameResolver, in which everyone can
// see whether the switches have an address yet. It is a mirror that the manager keeps when told to.
//
// +kubebuilder:object:generate=true
// +groupName=dns.openshift.io
package v1alpha1
