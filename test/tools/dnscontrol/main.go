// Command dnscontrol is DNSControl with only the providers that docs/how-to and test/clients use. With all of its
// providers it would need the libraries of every cloud, and minutes more to build.
package main

import (
	"os"

	"github.com/StackExchange/dnscontrol/v4/commands"
	_ "github.com/StackExchange/dnscontrol/v4/providers/axfrddns"
	_ "github.com/StackExchange/dnscontrol/v4/providers/powerdns"
)

func main() { os.Exit(commands.Run("dnscontrol of the tests")) }
