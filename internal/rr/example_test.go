package rr_test

import (
	"fmt"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
)

// Data is parsed once, relative to an origin, and kept in wire format.
func ExampleParseDataIn() {
	data, err := rr.ParseDataIn(rr.TypeMX, "10 mail", dnsname.MustParse("example.org"))
	if err != nil {
		panic(err)
	}
	set := rr.NewSet(dnsname.MustParse("example.org"), rr.TypeMX, 300, data)
	fmt.Println(set.Name, set.TTL, set.Type, rr.DataText(set.Type, set.Data[0]))
	// Output: example.org. 300 MX 10 mail.example.org.
}
