package safeat_test

import (
	"encoding/json"
	"testing"

	"github.com/nameplane/nameplane/internal/explain/safeat"
)

func TestTTLText(t *testing.T) {
	for _, ttl := range []safeat.TTL{{}, safeat.Seconds(0), safeat.Seconds(3600), safeat.Seconds(1<<32 - 1)} {
		text, err := json.Marshal(safeat.Clamps{Positive: ttl})
		if err != nil {
			t.Fatal(err)
		}
		var got safeat.Clamps
		if err := json.Unmarshal(text, &got); err != nil || got.Positive != ttl || got.Negative != (safeat.TTL{}) {
			t.Errorf("%s is read as %+v, %v, want %+v", text, got, err, ttl)
		}
	}
	var ttl safeat.TTL
	for _, text := range []string{`"-1"`, `"x"`, `"4294967296"`} {
		if json.Unmarshal([]byte(text), &ttl) == nil {
			t.Errorf("%s is read as %+v, want an error", text, ttl)
		}
	}
}
