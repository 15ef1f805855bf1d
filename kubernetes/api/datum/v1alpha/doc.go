// Package v1alpha has the Domain of networking.datumapis.com: a domain of a user, with its registration, nameservers
// and proofs of ownership. Start with Domain in types.go.
//
// The fields, defaults, conditions and reasons are those of Datum, so that its clients work with nameplane-service.
//
// +kubebuilder:object:generate=true
// +groupName=networking.datumapis.com
package v1alpha
