package mec

import (
	"log/slog"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// SilencedBy returns the zone of the zones API that contains a name, or the zero Name. Such a zone answers instead of
// the rules. The rules are kept, and served again when the zone is deleted.
func (s *Service) SilencedBy(n dnsname.Name) dnsname.Name {
	snap := s.pub.Snapshot()
	for ; !n.IsZero(); n = n.Parent() {
		if z := snap.ZoneOf(n); z != nil && !z.IsOverlay() {
			return n
		}
	}
	return dnsname.Name{}
}

// WarnSilenced logs that a new zone silences rules. The publisher calls it after commits (publish.Options.Committed),
// because several APIs create zones. It is not a method of Service, because there are commits before Open.
func WarnSilenced(pub *publish.Publisher, log *slog.Logger, changes []store.Change) {
	root := pub.Snapshot().ZoneOf(dnsname.Root)
	if root == nil || !root.IsOverlay() {
		return // no rule is served
	}
	for _, c := range changes {
		for _, set := range c.Sets {
			if set.Before != nil || set.After == nil || set.After.Type != rr.TypeSOA {
				continue
			}
			names, err := namesBelow(pub, root, set.After.Name)
			if err != nil || names == 0 {
				continue // silencedBy of the rules still shows it
			}
			log.Warn("a zone silences rules of edge applications", "zone", set.After.Name.String(), "names", names,
				"who", c.Actor.Who, "api", c.Actor.API, "request_id", c.Actor.RequestID)
		}
	}
}

// mostNames bounds the count of silenced names: a commit waits for it.
const mostNames = 1000

func namesBelow(pub *publish.Publisher, overlay *zone.Nodes, apex dnsname.Name) (n int, err error) {
	var last dnsname.Name
	err = pub.View(func(v store.View) error {
		return v.RecordSetsBelow(overlay.ID(), apex, func(set zone.RecordSet) (bool, error) {
			if set.Name != last {
				last = set.Name
				n++
			}
			return n < mostNames, nil
		})
	})
	return n, err
}
