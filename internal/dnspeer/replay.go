package dnspeer

import (
	"maps"
	"sync"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/wire"
)

// replays recognizes UPDATE messages that were received before. An attacker who records one on the network could otherwise
// send it again while its time is within the fudge, and so bring back records that were deleted since.
//
// RFC 8945 §5.2.3 wants the newest Time Signed of each key to be cached, and older messages to be refused with BADTIME.
// Taken to the letter, that refuses messages of honest clients: UDP delivers in any order, nsupdate sends a message that
// got no reply again for some seconds, and clients that share a key have clocks that differ a little. So messages that are
// older than the newest by less than lateness are taken too, each once: their MACs are remembered.
//
// Nothing is stored. A message that was received before a restart is refused after it, because it was signed in a second
// before the start. That leaves out the messages of a client whose clock is ahead of ours: those that it signed for a time
// after the start can be replayed once, until the fudge ends them. A row for each key in each update would prevent that,
// and make every update write more.
type replays struct {
	mu      sync.Mutex // guards the following
	keys    map[dnsname.Name]*signer
	start   int64 // when the server was started; all times are in seconds
	settled int64 // when settleLocked last ran
}

const (
	// lateness is how many seconds a message may be older than the newest one of its key: nsupdate sends a message
	// again after 3, 6 and 9 s.
	lateness = 10

	// maxSeen bounds the MACs that are remembered of one key, some 50 bytes each. Beyond it, no message may be late.
	// It is twice what one key can sign in a second that we can carry out.
	maxSeen = 1 << 15
)

// signer is what was received with one key.
type signer struct {
	newest int64 // Time Signed
	floor  int64 // messages that were signed before this time are refused
	last   int64 // when the last message was received
	seen   map[macPrefix]received
}

// macPrefix is as much of a MAC as tells messages apart.
type macPrefix [16]byte

// received is a message that was signed at or after the floor.
type received struct {
	signed   int64
	answered bool
}

func newReplays(start time.Time) *replays {
	return &replays{keys: map[dnsname.Name]*signer{}, start: start.Unix()}
}

// verdict says what is to be done with a message.
type verdict int

const (
	fresh    verdict = iota // it is new
	underway                // it came a second time while the first is carried out, whose reply is still to come
	replayed                // it came before, or may have
)

// begin takes note of a message whose MAC and time are good. The caller calls end when it is answered.
func (r *replays) begin(sig *wire.TSIG, now time.Time) verdict {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, signed, mac := now.Unix(), int64(sig.Time), macPrefix(sig.MAC)
	r.settleLocked(at)
	r.start = min(r.start, at) // it is later only if the clock was set back
	s := r.keys[sig.Key]
	if s == nil || s.newest > at+wire.TSIGFudge { // it is that late only if the clock was set back
		s = &signer{floor: r.start, seen: map[macPrefix]received{}}
		r.keys[sig.Key] = s
	}
	if m, ok := s.seen[mac]; ok && !m.answered {
		return underway
	} else if ok {
		return replayed
	}
	if signed > s.newest {
		s.newest = signed
		s.raise(signed - lateness)
	}
	if len(s.seen) >= maxSeen {
		s.raise(s.newest)
	}
	if signed < s.floor || len(s.seen) >= maxSeen {
		return replayed
	}
	s.last = at
	s.seen[mac] = received{signed: signed}
	return fresh
}

// end notes that a message was answered.
func (r *replays) end(sig *wire.TSIG) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.keys[sig.Key]; s != nil {
		if m, ok := s.seen[macPrefix(sig.MAC)]; ok {
			m.answered = true
			s.seen[macPrefix(sig.MAC)] = m
		}
	}
}

// raise refuses messages that were signed before a time, and forgets their MACs.
func (s *signer) raise(floor int64) {
	if floor > s.floor {
		s.floor = floor
		maps.DeleteFunc(s.seen, func(_ macPrefix, m received) bool { return m.signed < floor })
	}
}

// settleLocked frees the memory of keys that are not in use, so that it is bounded by what was received lately: late
// messages of theirs have had their time. A key is forgotten when its floor is older than any message may be.
func (r *replays) settleLocked(at int64) {
	if since := at - r.settled; 0 <= since && since < lateness {
		return
	}
	r.settled = at
	maps.DeleteFunc(r.keys, func(_ dnsname.Name, s *signer) bool {
		if at-s.last > lateness {
			s.raise(s.newest + 1)
		}
		return s.floor < at-wire.TSIGFudge && len(s.seen) == 0
	})
}
