package dnsname_test

import (
	"fmt"

	"github.com/nameplane/nameplane/internal/dnsname"
)

func ExampleParse() {
	name, err := dnsname.Parse("WWW.Example.ORG")
	fmt.Println(name, err)
	_, err = dnsname.Parse("www..example.org")
	fmt.Println(err)
	// Output:
	// www.example.org. <nil>
	// name has an empty label: "www..example.org"
}
