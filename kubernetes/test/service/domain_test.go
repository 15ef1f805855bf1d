package service

import (
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nameplane/nameplane/kubernetes/api/datum/v1alpha"
	"github.com/nameplane/nameplane/kubernetes/internal/controller/domain"
)

// TestDomains verifies a Domain with the definition and the rights of the manifests.
func TestDomains(t *testing.T) {
	r := start(t)
	if err := r.ApplyFS(os.DirFS(deployDir+"/domains"), "crds.yaml", "domains.yaml"); err != nil {
		t.Fatal(err)
	}
	if err := r.CreateNamespace("shop", nil); err != nil {
		t.Fatal(err)
	}
	d := &v1alpha.Domain{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "example"},
		Spec: v1alpha.DomainSpec{DomainName: "example.test"}}
	testDefinition(t, r, d)
	stop := r.runWith(t, func(mgr ctrl.Manager, log *slog.Logger) error {
		return domain.Setup(mgr, domain.Options{Gatherer: r.gatherer(), Log: log})
	})
	verified := func(what, status, reason string) {
		t.Helper()
		soon(t, what, func() error {
			if err := r.admin.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
				return err
			}
			for _, c := range d.Status.Conditions {
				if c.Type == v1alpha.Verified && string(c.Status) == status && c.Reason == reason {
					return nil
				}
			}
			return fmt.Errorf("%+v", d.Status.Conditions)
		})
	}
	verified("no proof", "False", v1alpha.ReasonPendingVerification)
	record := d.Status.Verification.DNSRecord
	r.dns(fmt.Sprintf("set %s. 60 TXT %q", record.Name, record.Content))
	verified("proved", "True", v1alpha.ReasonVerified)
	stop()
	all, err := r.Requests()
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range all {
		if q.User == user && (q.Code == 403 || q.Resource == "secrets" ||
			q.Write() && !slices.Contains([]string{"domains", "leases", "events"}, q.Resource)) {
			t.Errorf("%+v", q)
		}
	}
}

// testDefinition checks the defaults and the validation of a Domain.
func testDefinition(t *testing.T, r *rig, d *v1alpha.Domain) {
	t.Helper()
	for name, says := range map[string]string{"test": "must have a dot", "Example.test": "should match",
		"-a.test": "should match", strings.Repeat("a.", 127) + "test": "may not be more than 253"} {
		wrong := &v1alpha.Domain{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "wrong"},
			Spec: v1alpha.DomainSpec{DomainName: name}}
		if err := r.admin.Create(t.Context(), wrong); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %s", name, err, says)
		}
	}
	if err := r.admin.Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if len(d.Status.Conditions) != 3 || d.Status.Conditions[0].Reason != "Pending" ||
		d.Status.Conditions[0].Message != "Waiting for controller" {
		t.Errorf("defaults %+v", d.Status)
	}
	now := time.Now().UTC()
	for _, tt := range []struct{ patch, says string }{
		{`{"spec":{"domainName":"other.test"}}`, "domainName is immutable"},
		{fmt.Sprintf(`{"spec":{"desiredVerificationRefreshAttempt":%q}}`, now.Format(time.RFC3339)), ""},
		{fmt.Sprintf(`{"spec":{"desiredVerificationRefreshAttempt":%q}}`, now.Add(time.Minute).Format(time.RFC3339)),
			"duration('5m')"},
		{fmt.Sprintf(`{"spec":{"desiredVerificationRefreshAttempt":%q}}`, now.Add(time.Hour).Format(time.RFC3339)), ""},
	} {
		err := r.admin.Patch(t.Context(), d.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(tt.patch)))
		if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, want %q", tt.patch, err, tt.says)
		}
	}
}
