package dnspeer

import (
	"crypto/sha256"
	"encoding/binary"
	"testing"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/wire"
)

// message returns the TSIG of the n-th message of a key.
func message(key string, n int, signed int64) *wire.TSIG {
	mac := sha256.Sum256(binary.BigEndian.AppendUint64([]byte(key), uint64(n)))
	return &wire.TSIG{Key: dnsname.MustParse(key), MAC: mac[:], Time: uint64(signed)}
}

func nothingStored(dnsname.Name) (int64, error) { return 0, nil }

func TestReplays(t *testing.T) {
	type step struct {
		at     int64 // seconds since the start of the server
		key    string
		n      int
		signed int64
		want   verdict
	}
	tests := []struct {
		name  string
		steps []step
	}{
		{"again", []step{{1, "a.", 1, 1, fresh}, {1, "a.", 1, 1, replayed}, {300, "a.", 1, 1, replayed}}},
		{"two in a second", []step{{1, "a.", 1, 1, fresh}, {1, "a.", 2, 1, fresh}, {1, "a.", 1, 1, replayed}}},
		{"in the other order", []step{{5, "a.", 1, 5, fresh}, {5, "a.", 2, 4, fresh}, {6, "a.", 2, 4, replayed}}},
		{"sent again after the first was lost", []step{{100, "a.", 1, 100, fresh}, {109, "a.", 2, 109, fresh},
			{110, "a.", 3, 101, fresh}}},
		{"too late", []step{{100, "a.", 1, 100, fresh}, {100, "a.", 2, 90, fresh}, {100, "a.", 3, 89, replayed}}},
		{"again after much later ones", []step{{100, "a.", 1, 100, fresh}, {120, "a.", 2, 120, fresh},
			{120, "a.", 1, 100, replayed}}},
		{"again after a long silence", []step{{100, "a.", 1, 100, fresh}, {399, "a.", 1, 100, replayed},
			{399, "b.", 1, 399, fresh},
			{400, "a.", 1, 100, replayed}}},
		{"another key", []step{{100, "a.", 1, 100, fresh}, {100, "b.", 1, 50, fresh}, {101, "a.", 1, 100, replayed}}},
		{"before the start", []step{{1, "a.", 1, -1, replayed}, {1, "a.", 2, 0, fresh}, {1, "b.", 3, -200, replayed}}},
		{"clock ahead", []step{{100, "a.", 1, 390, fresh}, {100, "a.", 1, 390, replayed}, {101, "a.", 2, 101, replayed},
			{391, "a.", 3, 391, fresh}}},
		{"our clock was set back", []step{{10_000, "a.", 1, 10_000, fresh}, {100, "a.", 2, 100, fresh},
			{101, "a.", 2, 100, replayed}}},
		{"our clock was set back to before the start", []step{{100, "a.", 1, 100, fresh}, {-5000, "a.", 2, -5000, fresh},
			{-5000, "b.", 1, -5001, replayed}, {-4999, "b.", 2, -4999, fresh}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			start := time.Unix(1_800_000_000, 0)
			r := newReplays(start, nothingStored)
			for i, s := range tt.steps {
				sig := message(s.key, s.n, start.Unix()+s.signed)
				if got, _ := r.begin(sig, start.Add(time.Duration(s.at)*time.Second)); got != s.want {
					t.Errorf("step %d: %d, want %d", i, got, s.want)
				}
				r.end(sig)
			}
		})
	}
}

// TestSentAgainWhileInProgress checks that a repeated message gets no reply while the first one is executed, because
// that reply could contradict the first.
func TestSentAgainWhileInProgress(t *testing.T) {
	now := time.Now()
	r := newReplays(now, nothingStored)
	sig := message("a.", 1, now.Unix())
	for i, want := range []verdict{fresh, inProgress, inProgress} {
		if got, _ := r.begin(sig, now); got != want {
			t.Errorf("time %d: %d, want %d", i, got, want)
		}
	}
	r.end(sig)
	if got, _ := r.begin(sig, now); got != replayed {
		t.Errorf("after its reply: %d, want %d", got, replayed)
	}
}

// TestReplaysAreBounded floods one key, and uses very many keys: the memory depends only on recently received messages.
func TestReplaysAreBounded(t *testing.T) {
	start := time.Unix(1_800_000_000, 0)
	r := newReplays(start, nothingStored)
	n, taken := 0, 0
	for second := range int64(5) {
		for range maxSeen * 3 / 4 {
			n++
			at := start.Add(time.Duration(second) * time.Second)
			if got, _ := r.begin(message("a.", n, at.Unix()), at); got == fresh {
				taken++
			}
		}
	}
	if seen := len(r.keys[dnsname.MustParse("a.")].seen); taken != n || seen > maxSeen {
		t.Errorf("%d of %d were accepted, and %d are remembered", taken, n, seen)
	}
	for i := range 1000 {
		at := start.Add(time.Duration(i) * time.Second)
		name := string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676)) + "."
		if got, _ := r.begin(message(name, i, at.Unix()), at); got != fresh {
			t.Fatalf("key %d: %d", i, got)
		}
	}
	if len(r.keys) > wire.TSIGFudge+2*lateness {
		t.Errorf("%d keys are remembered", len(r.keys))
	}
}
