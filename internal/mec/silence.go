package mec

import (
	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// SilencedBy is the zone of the zones API that a name is in: it is asked before the rules, which are kept and not answered while
// it is there. It is zero for most names.
func (s *Service) SilencedBy(n dnsname.Name) dnsname.Name {
	snap := s.pub.Snapshot()
	for ; !n.IsZero(); n = n.Parent() {
		if z := snap.ZoneOf(n); z != nil && !z.IsOverlay() {
			return n
		}
	}
	return dnsname.Name{}
}

// Committed tells in the log when a new zone silences rules. It is for publish.Options.Committed, because zones come through
// many doors.
func (s *Service) Committed(changes []store.Change) {
	root := s.pub.Snapshot().ZoneOf(dnsname.Root)
	if root == nil || !root.IsOverlay() {
		return // no rule is answered
	}
	for _, c := range changes {
		for _, set := range c.Sets {
			if set.Before != nil || set.After == nil || set.After.Type != rr.TypeSOA {
				continue
			}
			names, err := s.namesBelow(root, set.After.Name)
			if err != nil || names == 0 {
				continue // who looks at the rules is told all the same
			}
			s.opts.Log.Warn("a zone silences rules of edge applications", "zone", set.After.Name.String(), "names", names,
				"who", c.Actor.Who, "door", c.Actor.Door, "request_id", c.Actor.RequestID)
		}
	}
}

// mostNames is up to where silenced names are counted: a commit waits for it.
const mostNames = 1000

func (s *Service) namesBelow(overlay *zone.Nodes, apex dnsname.Name) (n int, err error) {
	var last dnsname.Name
	err = s.pub.View(func(v store.View) error {
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
