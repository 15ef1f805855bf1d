package dnsserver

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestNaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n naps
		take := func(received int, want bool, when string) {
			t.Helper()
			if got := n.take(received); got != want {
				t.Errorf("%s: a nap: %v, want %v", when, got, want)
			}
		}
		take(crowd, false, "the first time, when Go may not have looked for long")
		take(crowd, true, "between crowds")
		take(crowd-1, false, "when queries come one by one")
		time.Sleep(napsTime)
		take(crowd, true, "at the end of the time for naps")
		time.Sleep(time.Nanosecond)
		take(crowd, false, "after it")
		take(crowd, true, "when Go has looked")
	})
}
