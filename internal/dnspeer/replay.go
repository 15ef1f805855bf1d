package dnspeer

import (
	"maps"
	"sync"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/wire"
)

// replays detects UPDATE messages that were received before. Otherwise an attacker could record one on the network and
// send it again while its time is within the fudge. That would restore records that were deleted since.
//
// RFC 8945 §5.2.3 requires the server to cache the newest Time Signed of each key and to refuse older messages with
// BADTIME. Taken literally, that refuses messages of honest clients. UDP delivers in any order. nsupdate repeats a
// message without a reply for some seconds. Clients that share a key have slightly different clocks. So messages that
// are older than the newest by less than lateness are accepted too, each once: their MACs are remembered.
//
// After a restart, messages that were signed before the start are refused. A client whose clock is ahead of ours may
// have signed messages for a time after the start. So each update stores the Time Signed of its message in the same
// commit, in one row for each key, when it is newer than the stored one. Messages of the key that are not newer than
// the row are refused after a restart. An update that fails stores nothing, so its message can be sent again after a
// restart.
type replays struct {
	mu     sync.Mutex // guards the following
	keys   map[dnsname.Name]*signer
	stored func(key dnsname.Name) (newest int64, err error)
	start  int64 // when the server started; all times are in seconds
	pruned int64 // when pruneLocked last ran
}

const (
	// lateness is how many seconds a message may be older than the newest one of its key: nsupdate repeats a message after
	// 3, 6 and 9 s.
	lateness = 10

	// maxSeen is the maximum number of remembered MACs of one key, about 50 bytes each. Above it, no message may be late.
	// It is twice the number of updates that the server can execute per second for one key.
	maxSeen = 1 << 15
)

// signer is the state of one key.
type signer struct {
	newest int64 // newest Time Signed
	floor  int64 // messages signed before this time are refused
	last   int64 // when the last message was received
	seen   map[macPrefix]received
}

// macPrefix is the part of a MAC that identifies a message.
type macPrefix [16]byte

// received is a message that was signed at or after the floor.
type received struct {
	signed   int64
	answered bool
}

// newReplays returns an empty replays. stored returns the newest Time Signed in the store, or 0.
func newReplays(start time.Time, stored func(dnsname.Name) (int64, error)) *replays {
	return &replays{keys: map[dnsname.Name]*signer{}, stored: stored, start: start.Unix()}
}

// verdict is the decision about a message.
type verdict int

const (
	fresh      verdict = iota // the message is new
	inProgress                // the same message is being executed; its reply is still to come
	replayed                  // the message was received before, or may have been
)

// begin registers a message whose MAC and time are valid. The caller must call end when it is answered.
func (r *replays) begin(sig *wire.TSIG, now time.Time) (verdict, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, signed, mac := now.Unix(), int64(sig.Time), macPrefix(sig.MAC)
	r.pruneLocked(at)
	r.start = min(r.start, at) // later only if the clock was set back
	s := r.keys[sig.Key]
	if s == nil {
		newest, err := r.stored(sig.Key)
		if err != nil {
			return replayed, err
		}
		s = &signer{newest: newest, floor: max(r.start, newest+1), seen: map[macPrefix]received{}}
		r.keys[sig.Key] = s
	}
	if s.newest > at+wire.TSIGFudge { // possible only if the clock was set back
		s = &signer{floor: r.start, seen: map[macPrefix]received{}}
		r.keys[sig.Key] = s
	}
	if m, ok := s.seen[mac]; ok && !m.answered {
		return inProgress, nil
	} else if ok {
		return replayed, nil
	}
	if signed > s.newest {
		s.newest = signed
		s.raise(signed - lateness)
	}
	if len(s.seen) >= maxSeen {
		s.raise(s.newest)
	}
	if signed < s.floor || len(s.seen) >= maxSeen {
		return replayed, nil
	}
	s.last = at
	s.seen[mac] = received{signed: signed}
	return fresh, nil
}

// end registers that a message was answered.
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

// raise makes begin refuse messages signed before floor, and forgets their MACs.
func (s *signer) raise(floor int64) {
	if floor > s.floor {
		s.floor = floor
		maps.DeleteFunc(s.seen, func(_ macPrefix, m received) bool { return m.signed < floor })
	}
}

// pruneLocked frees the memory of unused keys, so that it is bounded by recently received messages. Late messages of
// these keys have had their time. A key is removed when its floor is older than any acceptable message.
func (r *replays) pruneLocked(at int64) {
	if since := at - r.pruned; 0 <= since && since < lateness {
		return
	}
	r.pruned = at
	maps.DeleteFunc(r.keys, func(_ dnsname.Name, s *signer) bool {
		if at-s.last > lateness {
			s.raise(s.newest + 1)
		}
		return s.floor < at-wire.TSIGFudge && len(s.seen) == 0
	})
}
