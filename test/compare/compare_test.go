// Package compare sends the same questions about the same difficult zones to BIND, Knot, NSD and nameplane, and checks
// that nameplane answers as they do.
//
// Start with TestAnswersLikePeers. judge_test.go lists the accepted differences.
package compare

import (
	"slices"
	"sync"
	"testing"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/test/peers"
)

// maxShown limits the failures that are printed: one mistake in a lookup fails hundreds of questions.
const maxShown = 25

// TestAnswersLikePeers checks that each reply of nameplane equals the reply of a peer.
func TestAnswersLikePeers(t *testing.T) {
	zones, list := torture(t)
	us := startNameplane(t, zones)
	all := askPeers(t, zones, list)
	wrong := 0
	for _, a := range all {
		complaint := check(us, a)
		if complaint == "" {
			continue
		}
		if wrong++; wrong <= maxShown {
			t.Error(complaint)
		}
	}
	if wrong > 0 {
		t.Errorf("%d of %d questions answered as no peer does (the first %d are above)", wrong, len(list),
			min(wrong, maxShown))
	}
}

// check asks nameplane one question over UDP, and over TCP when the reply is truncated or may lack glue.
func check(us *asker, a answered) string {
	udp, err := us.udp(a.question)
	if err != nil {
		return err.Error()
	}
	if len(udp.Question) != 1 || udp.Question[0].Name != a.name {
		return a.String() + ": the question is not echoed as it was asked"
	}
	if udp.Truncated || a.large() {
		tcp, err := us.tcp(a.question)
		if err != nil {
			return err.Error()
		}
		return judge(normalise(tcp), a)
	}
	return judge(normalise(udp), a)
}

// TestReferralGlue checks RFC 9471 §3.1: when glue inside the delegated zone does not fit, the reply must have TC,
// because the client cannot continue without it. Peers disagree here.
func TestReferralGlue(t *testing.T) {
	zones, _ := torture(t)
	us := startNameplane(t, zones)
	q := question{"www." + largeCut, dns.TypeA}
	whole, err := us.tcp(q)
	if err != nil {
		t.Fatal(err)
	}
	part, err := us.udp(q)
	if err != nil {
		t.Fatal(err)
	}
	if len(whole.Extra) != 13*2+1 {
		t.Errorf("%s over TCP has %d additional records, want 26 addresses and the OPT", q, len(whole.Extra))
	}
	if !part.Truncated && normalise(part).glue != normalise(whole).glue {
		t.Errorf("%s over UDP lacks glue and does not say so: %v", q, part)
	}
}

// askPeers returns the questions with every peer's reply. It asks the peers at the same time, each with one client.
func askPeers(t *testing.T, zones []peers.Zone, list []question) []answered {
	t.Helper()
	programs := []peers.Program{peers.BIND(), peers.Knot(), peers.NSD()}
	replies := make([][]reply, len(programs))
	names := make([]string, len(programs))
	var wg sync.WaitGroup
	for i, p := range programs {
		a := start(t, p, zones)
		names[i] = a.name
		wg.Go(func() {
			for _, q := range list {
				m, err := a.ask(q)
				if err != nil {
					t.Error(err)
					return
				}
				replies[i] = append(replies[i], normalise(m))
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	all := make([]answered, len(list))
	differ := map[string]int{}
	for i, q := range list {
		all[i] = answered{question: q, peers: names, reply: []reply{replies[0][i], replies[1][i], replies[2][i]}}
		differ[agreement(all[i])]++
	}
	for group, n := range differ {
		t.Logf("%6d questions: %s", n, group)
	}
	return all
}

// agreement says which peers agree, such as "BIND | Knot = NSD".
func agreement(a answered) string {
	text := a.peers[0]
	var seen []reply
	for i, r := range a.reply {
		if i == 0 {
			seen = append(seen, r)
			continue
		}
		if slices.Contains(seen, r) {
			text += " = " + a.peers[i]
			if r != a.reply[i-1] {
				text += " (as " + a.peers[slices.Index(a.reply, r)] + ")"
			}
			continue
		}
		seen = append(seen, r)
		text += " | " + a.peers[i]
	}
	return text
}
