package iterate_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
)

// TestClient walks with a resolve.Client over in-memory connections. Its errors must lead to the same classes.
func TestClient(t *testing.T) {
	const good, www = "22 udp answer", "www.example.test. A"
	tests := []struct{ do, want string }{
		{"", "21 udp answer, " + good},
		{"fault truncate", "21 tcp answer, 21 udp truncated, " + good},
		{"fault malformed", "21 udp parse-error, " + good},
		{"fault timeout", "21 udp timeout, " + good},
		{"cookies", "21 udp answer, 21 udp badcookie, " + good},
	}
	for _, tt := range tests {
		t.Run(tt.do, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				defer time.Sleep(time.Minute) // until the client has closed its connections
				client := &resolve.Client{Dial: internet(map[string]string{"192.0.2.21": tt.do}).Dial}
				it := &iterate.Iterator{Exchanger: client, Options: bounded(iterate.Options{})}
				trace, err := it.Run(t.Context(), question(www))
				if err != nil {
					t.Fatal(err)
				}
				if got := classes(trace, "example.test.", www); got != tt.want {
					t.Errorf("got %s, want %s", got, tt.want)
				}
			})
		})
	}
}
