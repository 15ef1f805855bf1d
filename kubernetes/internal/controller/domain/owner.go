package domain

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nameplane/nameplane/kubernetes/api/datum/v1alpha"
)

// Owner returns a function that returns the condition Verified of the Domain that contains a hostname, in the same
// namespace. It returns nil if there is none, or if the Domains cannot be read. The longest Domain decides alone: a
// subdomain may belong to somebody else than the domain above it.
func Owner(reader client.Reader) func(ctx context.Context, namespace, host string) *metav1.Condition {
	return func(ctx context.Context, namespace, host string) (out *metav1.Condition) {
		var list v1alpha.DomainList
		if err := reader.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
			return nil
		}
		longest := 0
		for i := range list.Items {
			d := &list.Items[i]
			name := d.Spec.DomainName
			if len(name) > longest && strings.HasSuffix("."+host, "."+name) {
				longest, out = len(name), meta.FindStatusCondition(d.Status.Conditions, v1alpha.Verified)
			}
		}
		return out
	}
}
