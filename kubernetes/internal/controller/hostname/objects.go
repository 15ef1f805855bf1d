package hostname

import (
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/nameplane/nameplane/internal/explain/service"
)

// keptAnnotations are the beginnings of the annotations that checks read. All others are dropped: kubectl stores the
// whole object in one of them.
var keptAnnotations = []string{"external-dns.", "cert-manager.io/"}

// trim removes what no check reads, before the object is stored anywhere.
func trim(obj any) (any, error) {
	m, ok := obj.(metav1.Object)
	if !ok {
		return obj, nil
	}
	m.SetManagedFields(nil)
	kept := map[string]string{}
	for key, value := range m.GetAnnotations() {
		for _, prefix := range keptAnnotations {
			if strings.HasPrefix(key, prefix) {
				kept[key] = value
			}
		}
	}
	m.SetAnnotations(kept)
	return obj, nil
}

// parse returns an object in the form of the checks.
func parse(u *unstructured.Unstructured) (*object, error) {
	o := &object{id: objectID{u.GetKind(), u.GetNamespace(), u.GetName()}, apiVersion: u.GetAPIVersion(), uid: u.GetUID()}
	text, err := json.Marshal(u.Object)
	if err == nil {
		o.parsed, err = service.ParseObject([]byte(strings.Map(printable, string(text))))
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s/%s: %w", o.id.kind, o.id.namespace, o.id.name, err)
	}
	if o.parsed.Len() != 1 {
		return nil, fmt.Errorf("%s %s/%s: version %s is not known", o.id.kind, o.id.namespace, o.id.name, o.apiVersion)
	}
	for i := range o.parsed.Gateways {
		attached(o.parsed.Gateways[i].Status.Listeners)
	}
	for i := range o.parsed.ListenerSets {
		attached(o.parsed.ListenerSets[i].Status.Listeners)
	}
	o.parsed.Given, o.parsed.Ignored = nil, nil
	return o, nil
}

// attached reduces the number of attached routes to whether there are any, as the checks read it. Otherwise each new
// route of a Gateway would be a change for all its other routes.
func attached(all []service.ListenerStatus) {
	for i := range all {
		all[i].Attached = min(all[i].Attached, 1)
	}
}

// printable replaces the characters that JSON allows in a string and YAML does not. Without it, the owner of an object
// could hide it.
func printable(r rune) rune {
	if r >= 0x7f && r <= 0x9f && r != 0x85 || r == 0xfffe || r == 0xffff || r == 0xfeff {
		return '?'
	}
	return r
}
