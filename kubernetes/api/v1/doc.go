// Package v1 is the EgressFirewall of k8s.ovn.org: where the pods of a namespace may connect to. The wire format is that of
// OVN-Kubernetes.
//
// +kubebuilder:object:generate=true
// +groupName=k8s.ovn.org
package v1
