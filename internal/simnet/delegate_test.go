package simnet_test

import (
	"testing"
	"testing/synctest"

	"github.com/nameplane/nameplane/internal/simnet"
)

func TestDelegation(t *testing.T) {
	const script = `
		zone test.
		test. 60 NS ns.test.
		example.test. 60 NS ns.example.test.
		example.test. 60 DS 1 8 2 AA
		ns.example.test. 60 A 192.0.2.2
		old.test. 60 DNAME new.test.
		www.new.test. 60 A 192.0.2.3
	`
	const referral = "NOERROR, / example.test. 60 NS ns.example.test., / example.test. 60 DS 1 8 2 AA"
	tests := []struct{ name, typ, more, want string }{
		{"www.example.test.", "A", "", referral},
		{"ns.example.test.", "A", "", referral},
		{"example.test.", "NS", "", referral},
		{"example.test.", "DS", "", "NOERROR, example.test. 60 DS 1 8 2 AA"},
		{"test.", "NS", "", "NOERROR, test. 60 NS ns.test."},
		{"test.", "SOA", "", "NOERROR, test. 60 SOA ..."},
		{"www.old.test.", "A", "",
			"NOERROR, old.test. 60 DNAME new.test., www.old.test. 60 CNAME www.new.test., www.new.test. 60 A 192.0.2.3"},
		{"new.test.", "A", "", "NOERROR, / test. 60 SOA ..."},
		{"new.test.", "A", "hollow", "NXDOMAIN, / test. 60 SOA ..."},
		{"www.new.test.", "A", "plain", "FORMERR"},
		{"www.new.test.", "A", "fault notimp", "NOTIMP"},
		{"www.new.test.", "A", "fault notauth", "NOTAUTH"},
		// only clients that send a client cookie need a server cookie
		{"www.new.test.", "A", "cookies", "NOERROR, www.new.test. 60 A 192.0.2.3"},
	}
	for _, tt := range tests {
		t.Run(tt.name+tt.typ+tt.more, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := simnet.New(1)
				net.MustServer(authority, script+tt.more)
				if got := ask(t, net, authority, tt.name, tt.typ); got != tt.want {
					t.Errorf("%s %s = %s, want %s", tt.name, tt.typ, got, tt.want)
				}
			})
		})
	}
}
