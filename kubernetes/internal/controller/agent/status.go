package agent

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dnsv1alpha1 "github.com/nameplane/nameplane/kubernetes/api/dns/v1alpha1"
	apiv1 "github.com/nameplane/nameplane/kubernetes/api/v1"
	"github.com/nameplane/nameplane/kubernetes/internal/controller/egress"
)

// maxComplaints limits the errors in the status of a firewall, which may have a thousand bad rules.
const maxComplaints = 5

// rowID matches row UUIDs in errors. The database names a different row in each attempt, so each error would be a new
// message, and a write of the firewall's status twice a second.
var rowID = regexp.MustCompile(`(?i)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// message returns the status message of the zone about a firewall.
func message(zone string, bad []error, failed error) string {
	var said []string
	for i, err := range bad {
		if i == maxComplaints {
			said = append(said, fmt.Sprintf("and %d more", len(bad)-i))
			break
		}
		said = append(said, err.Error())
	}
	if failed != nil {
		said = append(said, rowID.ReplaceAllString(failed.Error(), "…"))
	}
	if len(said) == 0 {
		return zone + ": " + egress.Applied
	}
	return zone + ": " + egress.NotApplied + ": " + strings.Join(said, "; ")
}

// latest holds the outcome that is not reported yet. An unavailable API server must not block programming.
type latest chan outcome

func (l latest) put(out outcome) {
	for {
		select {
		case l <- out:
			return
		case <-l: // drop an older outcome
		}
	}
}

// reports reports outcomes until ctx ends.
func (a *agent) reports(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case out := <-a.outcomes:
			rctx, cancel := context.WithTimeout(ctx, reportTimeout)
			if !a.report(rctx, out) && ctx.Err() == nil {
				time.AfterFunc(retryDelay, a.engine.Changed)
			}
			cancel()
		}
	}
}

// report writes the result into the status of each firewall and each EgressFirewallDNSName, after the switch has
// confirmed it. It returns false if it must be repeated.
func (a *agent) report(ctx context.Context, out outcome) (done bool) {
	var efs apiv1.EgressFirewallList
	if err := a.client.List(ctx, &efs, client.UnsafeDisableDeepCopy); err != nil {
		a.opts.Log.Error("report", "err", err)
		return false
	}
	type statusMessage struct {
		ef   *apiv1.EgressFirewall
		said string
	}
	var todo []statusMessage
	claims := false // whether a message claims that rules are in force
	for i := range efs.Items {
		ef := &efs.Items[i]
		bad, read := out.reading.errs[ef.Namespace]
		if ef.Name != egress.Name || !read || ef.DeletionTimestamp != nil {
			continue
		}
		said := message(a.opts.Zone, bad, out.failed[ef.Namespace])
		if mine := egress.MessagesOf(a.opts.Zone, ef.Status.Messages); len(mine) == 1 && mine[0] == said {
			continue
		}
		todo = append(todo, statusMessage{ef, said})
		claims = claims || out.failed[ef.Namespace] == nil
	}
	if claims && !a.confirmed(ctx, out) {
		return false
	}
	done = true
	for _, t := range todo {
		if err := a.applyStatus(ctx, t.ef, &apiv1.EgressFirewallStatus{Messages: []string{t.said}}); err != nil {
			a.opts.Log.Error("report on firewall", "namespace", t.ef.Namespace, "err", err)
			done = false
		}
	}
	if a.opts.DNSNames && len(out.failed) == 0 {
		done = a.reportNames(ctx, out) && done
	}
	return done
}

// confirmed waits for the switch. Rules that are only written to the database must not be reported as in force.
func (a *agent) confirmed(ctx context.Context, out outcome) bool {
	short, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	err := a.db.Confirm(short, out.mark)
	if err != nil && ctx.Err() == nil {
		a.opts.Log.Warn("reports are delayed until the switch confirms", "err", err)
	}
	return err == nil
}

const (
	reportTimeout  = 10 * time.Second // for all reports of a pass
	confirmTimeout = 2 * time.Second  // for the confirmation of the switch
)

// reportNames reports which version of each DNSNameResolver the switch has, if the manager waits for it.
func (a *agent) reportNames(ctx context.Context, out outcome) (done bool) {
	var names dnsv1alpha1.EgressFirewallDNSNameList
	if err := a.client.List(ctx, &names, client.UnsafeDisableDeepCopy); err != nil {
		a.opts.Log.Error("report", "err", err)
		return false
	}
	var behind []*dnsv1alpha1.EgressFirewallDNSName
	for i := range names.Items {
		if n := &names.Items[i]; a.mustReport(n, out.reading.versions[n.Name]) {
			behind = append(behind, n)
		}
	}
	if len(behind) == 0 {
		return true
	}
	if !a.confirmed(ctx, out) {
		return false
	}
	var failed atomic.Bool
	var wg sync.WaitGroup
	slots := make(chan struct{}, 8)
	for _, n := range behind {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			word := dnsv1alpha1.EgressFirewallDNSNameProgrammed{Zone: a.opts.Zone,
				AddressesVersion: out.reading.versions[n.Name]}
			status := dnsv1alpha1.EgressFirewallDNSNameStatus{Programmed: []dnsv1alpha1.EgressFirewallDNSNameProgrammed{word}}
			if err := a.applyStatus(ctx, n, &status); err != nil {
				a.opts.Log.Error("report on name", "name", n.Name, "err", err)
				failed.Store(true)
			}
		})
	}
	wg.Wait()
	return !failed.Load()
}

// mustReport reports whether the manager waits for the report of this zone, and version is new enough.
func (a *agent) mustReport(n *dnsv1alpha1.EgressFirewallDNSName, version string) bool {
	want := n.Status.AddressesVersion
	if !egress.Reaches(version, want) {
		return false
	}
	return !slices.ContainsFunc(n.Status.Programmed, func(p dnsv1alpha1.EgressFirewallDNSNameProgrammed) bool {
		return p.Zone == a.opts.Zone && egress.Reaches(p.AddressesVersion, want)
	})
}

// applyStatus applies this zone's part of a status.
func (a *agent) applyStatus(ctx context.Context, obj client.Object, status any) error {
	err := egress.Apply(ctx, a.client, obj, a.opts.Zone, status)
	if apierrors.IsNotFound(err) || errors.Is(err, context.Canceled) {
		return nil // the object was deleted, or the agent is stopping
	}
	return err
}
