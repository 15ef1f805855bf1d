// Package externaldns014 manages the records of a running server with the webhook client of external-dns v0.14.0, the
// first release that has one. Start with TestWebhook.
package externaldns014

import (
	"context"
	"testing"

	"sigs.k8s.io/external-dns/endpoint"
	"sigs.k8s.io/external-dns/plan"
	"sigs.k8s.io/external-dns/provider/webhook"

	"github.com/nameplane/nameplane/test/externaldns"
)

// client is the webhook client of external-dns.
type client struct{ *webhook.WebhookProvider }

type list = []*endpoint.Endpoint

func (c client) Match(domain string) bool { return c.GetDomainFilter().Match(domain) }

func (c client) Records(ctx context.Context) ([]externaldns.Endpoint, error) {
	found, err := c.WebhookProvider.Records(ctx)
	return externaldns.Convert[[]externaldns.Endpoint](found), err
}

func (c client) Adjust(in []externaldns.Endpoint) ([]externaldns.Endpoint, error) {
	out, err := c.AdjustEndpoints(externaldns.Convert[list](in))
	return externaldns.Convert[[]externaldns.Endpoint](out), err
}

func (c client) Apply(ctx context.Context, in externaldns.Changes) error {
	return c.ApplyChanges(ctx, &plan.Changes{Create: externaldns.Convert[list](in.Create),
		UpdateOld: externaldns.Convert[list](in.UpdateOld), UpdateNew: externaldns.Convert[list](in.UpdateNew),
		Delete: externaldns.Convert[list](in.Delete)})
}

func (c client) Plan(current, desired []externaldns.Endpoint) externaldns.Changes {
	p := plan.Plan{Current: externaldns.Convert[list](current), Desired: externaldns.Convert[list](desired),
		Policies: []plan.Policy{&plan.SyncPolicy{}}, DomainFilter: endpoint.MatchAllDomainFilters{&c.DomainFilter},
		ManagedRecords: []string{endpoint.RecordTypeA, endpoint.RecordTypeAAAA, endpoint.RecordTypeCNAME}}
	changes := p.Calculate().Changes
	convert := externaldns.Convert[[]externaldns.Endpoint]
	return externaldns.Changes{Create: convert(changes.Create), UpdateOld: convert(changes.UpdateOld),
		UpdateNew: convert(changes.UpdateNew), Delete: convert(changes.Delete)}
}

func TestWebhook(t *testing.T) {
	externaldns.Run(t, func(url string) (externaldns.Client, error) {
		p, err := webhook.NewWebhookProvider(url)
		return client{p}, err
	})
}
