package service

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reasons are the reasons of the Gateway API for a condition that is not as it must be, and the link that they break.
// Without a link, the service may still work: the reason is a warning, or the controller has not decided yet.
var reasons = []struct {
	object, condition, status string
	reasons                   string
	broken                    string
}{
	{"class", "Accepted", "False", "InvalidParameters Unsupported", "class"},
	{"class", "Accepted", "Unknown", "Pending", ""},
	{"gateway", "Accepted", "False", "UnsupportedAddress InvalidParameters Invalid", "gateway"},
	{"gateway", "Accepted", "False", "ListenersNotValid", ""},
	{"gateway", "Accepted", "Unknown", "Pending", ""},
	{"gateway", "Programmed", "False", "Invalid NoResources AddressNotAssigned AddressNotUsable", "gateway"},
	{"gateway", "Programmed", "Unknown", "Pending", ""},
	{"gateway", "ResolvedRefs", "False", "InvalidClientCertificateRef RefNotPermitted ListenersNotResolved", ""},
	{"listener", "Accepted", "False", "PortUnavailable UnsupportedProtocol UnsupportedValue NoValidCACertificate " +
		"UnverifiedHostnamesPresent HostnameInUse", "listener"}, // the last two are those of Datum
	{"listener", "Accepted", "Unknown", "Pending", ""},
	{"listener", "Programmed", "False", "Invalid UnverifiedHostnamesPresent HostnameInUse", "listener"},
	{"listener", "Programmed", "Unknown", "Pending", ""},
	{"listener", "Conflicted", "True", "HostnameConflict ProtocolConflict", "listener"},
	{"listener", "ResolvedRefs", "False", "InvalidCertificateRef InvalidRouteKinds RefNotPermitted " +
		"InvalidCACertificateRef InvalidCACertificateKind", "listener"},
	{"listener", "OverlappingTLSConfig", "True", "OverlappingHostnames OverlappingCertificates", ""},
	{"route", "Accepted", "False", "NotAllowedByListeners NoMatchingListenerHostname NoMatchingParent UnsupportedValue " +
		"IncompatibleFilters", "route"},
	{"route", "Accepted", "Unknown", "Pending", ""},
	{"route", "ResolvedRefs", "False", "RefNotPermitted InvalidKind BackendNotFound UnsupportedProtocol", "backend"},
	{"route", "PartiallyInvalid", "True", "UnsupportedValue", "route"},
}

// testReasons writes the status of a controller for each reason, and compares the first broken link. An old generation
// makes the same reason unknown.
func testReasons(t *testing.T, r *rig) {
	type hostCase struct{ name, reason, broken string }
	var all []hostCase
	n := 0
	for _, x := range reasons {
		for reason := range strings.FieldsSeq(x.reasons) {
			name := fmt.Sprintf("r%d", n)
			n++
			s := working()
			changed := condition(x.condition, x.status, reason)
			of := map[string]*[]string{"class": &s.class, "gateway": &s.gateway, "listener": &s.listener, "route": &s.route}
			*of[x.object] = replaced(*of[x.object], x.condition, changed)
			r.apply(t, gateway(name))
			r.set(t, name, s)
			all = append(all, hostCase{name, x.object + " " + x.condition + " " + reason, x.broken})
		}
	}
	for _, c := range all {
		t.Run(c.reason, func(t *testing.T) {
			x := r.want(t, c.reason, "shop", c.name+".example.test", c.broken)
			if c.broken != "" && !strings.Contains(x.Status.Summary, c.reason[strings.LastIndexByte(c.reason, ' ')+1:]) {
				t.Errorf("the reason is not in %q", x.Status.Summary)
			}
		})
	}
	// The controller has not seen the last change: the same reason decides nothing.
	name := all[len(all)-1].name
	r.patchMeta(t, "HTTPRoute", "shop", name, `{"spec":{"hostnames":["`+name+`.example.test","new.example.test"]}}`)
	r.want(t, "old generation", "shop", name+".example.test", "")
	for _, c := range all {
		r.remove(t, "gateway.networking.k8s.io/v1", "HTTPRoute", "shop", c.name)
	}
	for _, c := range all {
		soon(t, c.name, func() error { return r.absent(t.Context(), "shop", c.name+".example.test") })
	}
}

// replaced returns conditions with one added or replaced.
func replaced(all []string, kind, by string) (out []string) {
	for _, c := range all {
		if !strings.HasPrefix(c, fmt.Sprintf(`{"type":%q,`, kind)) {
			out = append(out, c)
		}
	}
	return append(out, by)
}

// patchMeta patches an object of the Gateway API, but not its status.
func (r *rig) patchMeta(t *testing.T, kind, ns, name, patch string) {
	t.Helper()
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("gateway.networking.k8s.io/v1")
	u.SetKind(kind)
	u.SetNamespace(ns)
	u.SetName(name)
	if err := r.admin.Patch(t.Context(), u, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

// patchStatus patches the status of an object.
func (r *rig) patchStatus(t *testing.T, apiVersion, kind, ns, name string, patch map[string]any) {
	t.Helper()
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetNamespace(ns)
	u.SetName(name)
	text, err := json.Marshal(patch)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.admin.Status().Patch(t.Context(), u, client.RawPatch(types.MergePatchType, text)); err != nil {
		t.Fatal(err)
	}
}
