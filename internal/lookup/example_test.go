package lookup_test

import (
	"fmt"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/lookup"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/zone"
)

// Answer appends records to a message that already has a header and a question.
func ExampleAnswer() {
	apex, www := dnsname.MustParse("example.org"), dnsname.MustParse("www.example.org")
	zoneOf := zone.NewNodes(uuid.New(), apex).Edit()
	for _, line := range []struct {
		name dnsname.Name
		typ  rr.Type
		text string
	}{
		{apex, rr.TypeSOA, "ns.example.org. hostmaster.example.org. 1 3600 600 86400 60"},
		{apex, rr.TypeNS, "ns.example.org."},
		{www, rr.TypeA, "192.0.2.1"},
	} {
		data, err := rr.ParseData(line.typ, line.text)
		if err != nil {
			panic(err)
		}
		zoneOf.Put(rr.NewSet(line.name, line.typ, 300, data))
	}
	snapshot := zone.NewSnapshot(zoneOf.Done())
	for _, typ := range []rr.Type{rr.TypeA, rr.TypeMX} {
		r := reply(www, typ, 512)
		lookup.Answer(snapshot, lookup.Question{Name: []byte(www.Wire()), Type: typ}, r)
		fmt.Println(typ, r.Kind, r.Answers, r.Authorities)
	}
	// Output:
	// A positive 1 0
	// MX nodata 0 1
}
