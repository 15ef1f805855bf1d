// Package v1 has the EgressFirewall of k8s.ovn.org: the destinations to which the pods of a namespace may connect. The
// wire format is that of OVN-Kubernetes. Start with EgressFirewall in types.go.
//
// +kubebuilder:object:generate=true
// +groupName=k8s.ovn.org
package v1
