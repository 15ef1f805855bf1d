package designate_test

import (
	"fmt"
	"testing"

	"github.com/nameplane/nameplane/internal/httpapi/designate"
)

// BenchmarkUpdateRecordSet measures one PUT of a record set, from the request to the reply, the commit included.
func BenchmarkUpdateRecordSet(b *testing.B) {
	s := newServer(b, designate.Settings{})
	set := s.set(s.zone("example.org."), "www.example.org.", "A", "192.0.2.1")
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s.as(alice, 200, "PUT "+set, fmt.Sprintf(`{"records":["192.0.2.%d"]}`, i%250+1))
	}
}
