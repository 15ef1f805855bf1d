// Package v1alpha1 has the HostnameReport of nameplane.io: whether a hostname of a cluster works, and the first broken
// link if it does not. Start with HostnameReport in types.go.
//
// +kubebuilder:object:generate=true
// +groupName=nameplane.io
package v1alpha1
