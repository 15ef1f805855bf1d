package dnspeer

import (
	"fmt"
	"sync"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/wire"
)

// refusal says why an update is refused.
type refusal struct {
	rcode  int
	ede    int
	kind   string // label of the metric
	reason string // for the client and the log
}

// unsigned refuses an update without a signature.
var unsigned = refusal{dns.RcodeRefused, wire.EDEProhibited, "unsigned", "the update is not signed with a TSIG key"}

// signatureProblem explains an error in a TSIG record.
func signatureProblem(sig *wire.TSIG, code uint16) string {
	switch code {
	case wire.TSIGBadKey:
		return fmt.Sprintf("there is no key %s with the algorithm %s", sig.Key, sig.Algorithm)
	case wire.TSIGBadSig:
		return fmt.Sprintf("the signature is not by the secret of key %s", sig.Key)
	case wire.TSIGBadTime:
		return "the time of the signature differs from the time of the server by more than 300 s"
	}
	return "the signature is truncated"
}

// refuseUpdate answers that an update is refused, and reports it.
func (r *request) refuseUpdate(why refusal) error {
	r.logRefusal(why)
	r.stat.updates.WithLabelValues(wire.RcodeText(why.rcode)).Inc()
	return r.send(r.unsignedReply(why.rcode, why.ede, why.reason))
}

// logRefusal counts a refused update, and logs it unless there are too many.
func (r *request) logRefusal(why refusal) {
	r.stat.refusals.WithLabelValues(why.kind).Inc()
	line := r.peer() + " " + r.name.String() + " " + why.reason
	write, omitted := r.refusals.admit(why.kind, line, time.Now())
	if !write {
		return
	}
	r.cfg.Log.Warn("update refused", "zone", r.name.String(), "peer", r.peer(), "rcode", wire.RcodeText(why.rcode),
		"reason", why.reason, "omitted", omitted)
}

const (
	refusalWindow = time.Minute
	maxRefusals   = 20 // log lines of one kind in a refusalWindow
)

// refusalLog limits the log lines about refused updates: the same refusal is logged once in a refusalWindow, and each
// kind of refusal has a limit of its own. So a flood of unsigned updates does not hide that a key lacks a permission.
type refusalLog struct {
	mu    sync.Mutex // guards the rest
	kinds map[string]*refusalLines
}

// refusalLines has the lines of one kind in the current window.
type refusalLines struct {
	start   time.Time
	lines   map[string]bool
	omitted int // refusals that were not logged since the last line
}

func newRefusalLog() *refusalLog { return &refusalLog{kinds: map[string]*refusalLines{}} }

// admit reports whether to log a line, and how many refusals of this kind were not logged since the last line.
func (l *refusalLog) admit(kind, line string, now time.Time) (write bool, omitted int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.kinds[kind]
	if k == nil || now.Sub(k.start) >= refusalWindow {
		next := &refusalLines{start: now, lines: map[string]bool{}}
		if k != nil {
			next.omitted = k.omitted
		}
		k, l.kinds[kind] = next, next
	}
	if k.lines[line] || len(k.lines) >= maxRefusals {
		k.omitted++
		return false, 0
	}
	k.lines[line] = true
	omitted, k.omitted = k.omitted, 0
	return true, omitted
}
