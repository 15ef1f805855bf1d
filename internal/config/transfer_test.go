package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/config"
)

const transferYAML = `
transfer:
  allow: [192.0.2.0/24, "2001:db8::1"]
  allow_keys: [every.example.org]
  secondaries:
    - address: 198.51.100.1
    - address: "[2001:db8::2]:5353"
      key: second.example.org.
`

func TestTransfer(t *testing.T) {
	c, err := config.Parse("c.yaml", []byte(transferYAML))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range c.Transfer.Networks() {
		got = append(got, n.String())
	}
	for _, k := range c.Transfer.Keys() {
		got = append(got, k.String())
	}
	for _, s := range c.Transfer.Secondaries {
		got = append(got, s.Remote().String()+" "+s.KeyName().String())
	}
	want := []string{"192.0.2.0/24", "2001:db8::1/128", "198.51.100.1/32", "every.example.org.", "second.example.org.",
		"198.51.100.1:53 ", "[2001:db8::2]:5353 second.example.org."}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestTransferMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"allow: [everybody]":                     "c.yaml:2:11: transfer.allow[0]: must be an address or a network",
		"allow: [0.0.0.0/0]":                     "transfer.allow[0]: gives every zone to the whole internet",
		"allow_keys: ['']":                       "transfer.allow_keys[0]: must be the name of a TSIG key",
		"secondaries: [{address: ns.test}]":      "transfer.secondaries[0].address: must be an address",
		"secondaries: [{address: '1.2.3.4:0'}]":  "transfer.secondaries[0].address: must be an address",
		"secondaries: [{adress: 192.0.2.1}]":     "did you mean address?",
		"secondaries: [{address: 'tls://ns1'}]":  "transfer.secondaries[0].address: must be an address",
		"secondaries: [{certificate: ns2.test}]": "certificate: requires transfer.tls_ca",
	} {
		_, err := config.Parse("c.yaml", []byte("transfer:\n  "+text+"\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
