// Package domain serves the Domains of Datum: it looks up their registration, and verifies their ownership at the
// authoritative servers.
//
// Start with Reconcile in domain.go. verify.go checks the proofs, and registration.go looks up the registry.
//
// No cache is asked: it could still have a proof that was deleted, and would remember a proof that is entered a moment
// later as missing. A server that does not answer changes nothing.
package domain

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain/gather"
	"github.com/nameplane/nameplane/internal/registry"
	"github.com/nameplane/nameplane/kubernetes/api/datum/v1alpha"
)

// The name and the path of the proofs, as Datum has them.
const (
	// With other values, owners would have to enter their proofs again.
	recordLabel = "datum-custom-hostname"
	tokenPath   = "/.well-known/datum-custom-hostname-challenge/"
)

// The times between two attempts.
const (
	daily       = 24 * time.Hour
	lookupAgain = time.Hour     // after a lookup of the registry that failed
	whenGone    = 8 * time.Hour // a proof is missing, and the domain still counts as verified: three in a day
)

// workers is the number of Domains that are verified at the same time. A check mostly waits for servers, so a few
// workers keep a slow zone from delaying the others. The rate of queries to one server is limited for all of them
// together.
const workers = 4

// Options are the options of Setup.
type Options struct {
	Gatherer gather.Gatherer // asks the servers; its Registry looks up registrations
	Log      *slog.Logger
}

// Controller verifies Domains.
type Controller struct {
	client  client.Client
	zones   client.Reader // reads DNSZones
	options Options

	mu     sync.Mutex // guards the following
	misses map[types.UID]int
}

// Setup adds a controller to a manager.
func Setup(mgr ctrl.Manager, o Options) error {
	// DNSZones are not cached: a cluster may not have the kind, and one list per check is cheaper than a watch on all of
	// them.
	c := &Controller{client: mgr.GetClient(), zones: mgr.GetAPIReader(), options: o, misses: map[types.UID]int{}}
	return builder.ControllerManagedBy(mgr).
		Named("domains").
		// This controller writes the status itself: without the predicate, each write would start another Reconcile.
		For(&v1alpha.Domain{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(c)
}

// Reconcile does what is due for a Domain.
func (c *Controller) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var d v1alpha.Domain
	if err := c.client.Get(ctx, req.NamespacedName, &d); err != nil || d.DeletionTimestamp != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	before := d.Status.DeepCopy()
	now := time.Now()
	next, err := c.update(ctx, &d, now)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !equality.Semantic.DeepEqual(before, &d.Status) {
		if err := c.client.Status().Update(ctx, &d); err != nil {
			if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
				return ctrl.Result{RequeueAfter: time.Second}, nil // the cache has an older version
			}
			return ctrl.Result{}, fmt.Errorf("write the status of Domain %s: %w", req, err)
		}
	}
	if next.IsZero() {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{RequeueAfter: max(time.Until(next), time.Second)}, nil
}

// update updates the status of a Domain, and returns when something is due again. A zero time means never.
func (c *Controller) update(ctx context.Context, d *v1alpha.Domain, now time.Time) (time.Time, error) {
	name, err := dnsname.Parse(d.Spec.DomainName)
	suffix := registry.Suffix{}
	if err == nil {
		suffix = registry.SuffixOf(name)
	}
	if suffix.Domain.IsZero() {
		set(d, now, v1alpha.ValidDomain, metav1.ConditionFalse, v1alpha.ReasonInvalidApex,
			d.Spec.DomainName+" is a public suffix or no domain name: nobody can own it.")
		set(d, now, v1alpha.Verified, metav1.ConditionFalse, v1alpha.ReasonInvalidApex, "The domain is not valid.")
		return time.Time{}, nil
	}
	d.Status.Apex = suffix.Domain == name
	set(d, now, v1alpha.ValidDomain, metav1.ConditionTrue, v1alpha.ReasonValid, "")
	prepare(d)
	if due(d.Status.Verification.NextVerificationAttempt, d.Status.Verification.LastVerificationAttempt,
		d.Spec.DesiredVerificationRefreshAttempt, now) {
		if err := c.verify(ctx, d, now); err != nil {
			return time.Time{}, err
		}
	}
	if d.Status.Registration == nil {
		d.Status.Registration = &v1alpha.DomainRegistration{}
	}
	r := d.Status.Registration
	if c.options.Gatherer.Registry != nil &&
		due(r.NextRefreshAttempt, r.LastRefreshAttempt, d.Spec.DesiredRegistrationRefreshAttempt, now) {
		if err := c.register(ctx, d, suffix.Domain, now); err != nil {
			return time.Time{}, err
		}
	}
	next := d.Status.Verification.NextVerificationAttempt.Time
	if r := d.Status.Registration.NextRefreshAttempt; !r.IsZero() && r.Time.Before(next) {
		next = r.Time
	}
	return next, nil
}

// due reports whether an attempt is due: by its schedule, or because the user wishes one. A wish counts once: the time
// of the attempt that follows it is later.
func due(next, last metav1.Time, wished *metav1.Time, now time.Time) bool {
	return !next.After(now) || wished != nil && !wished.After(now) && wished.After(last.Time)
}

// prepare creates the proofs. Their text is random: nobody else can know it before the owner has entered it.
func prepare(d *v1alpha.Domain) {
	v := d.Status.Verification
	if v != nil && v.DNSRecord.Content != "" {
		return
	}
	secret := string(uuid.NewUUID())
	d.Status.Verification = &v1alpha.DomainVerification{
		DNSRecord: v1alpha.DNSVerificationRecord{Name: recordLabel + "." + d.Spec.DomainName, Type: "TXT", Content: secret},
		HTTPToken: v1alpha.HTTPVerificationToken{
			URL: "http://" + d.Spec.DomainName + tokenPath + strings.ToLower(string(d.UID)), Body: secret},
	}
}

// set sets a condition. Its time changes only with its status. ownership reads the time of a miss from it.
func set(d *v1alpha.Domain, now time.Time, kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&d.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason,
		Message: message, ObservedGeneration: d.Generation, LastTransitionTime: metav1.NewTime(now.Truncate(time.Second))})
}

// pause returns the time until the next attempt of a Domain that is not verified: short while its owner is likely to
// enter the proof. The times are those of Datum. They do no harm here, because no cache is asked.
func pause(age time.Duration) time.Duration {
	d := 5 * time.Minute
	switch {
	case age < 5*time.Minute:
		d = 5 * time.Second
	case age < 15*time.Minute:
		d = time.Minute
	}
	return d + rand.N(d/4)
}
