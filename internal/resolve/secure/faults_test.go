package secure_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/resolve/secure"
)

func rk(s string) rrKey {
	q := question(s)
	return rrKey{q.Name, uint16(q.Type)}
}

const day = 24 * time.Hour

// TestFaults breaks one thing in each case and checks the result.
func TestFaults(t *testing.T) {
	const www, ok = "www.example.test. A", "example.test. secure; "
	zsk := newKey("example.test.", 256, dns.ECDSAP256SHA256, 256, 2)
	other := newKey("example.test.", 257, dns.ECDSAP256SHA256, 256, 3)
	weak := newKey("example.test.", 257, dns.RSASHA1, 1024, 1)
	md5 := "example.test. DS 1 1 2 " + strings.Repeat("AB", 32)
	expired := func(k string) func(*signed) {
		return func(z *signed) { z.resign(rk(k), bubble.Add(-30*day), bubble.Add(-day)) }
	}
	second := plain(other, newKey("example.test.", 256, dns.ECDSAP256SHA256, 256, 4))
	tests := []struct {
		name     string
		scenario scenario
		q        string
		want     string
	}{
		{"SEC01: DS without its key", scenario{ds: other.ToDS(dns.SHA256).String(),
			how: plain(newKSK("example.test."), zsk)}, www,
			"bogus; example.test. bogus no-key; www.example.test. answer bogus above"},
		{"SEC01: DS with another digest", scenario{ds: fmt.Sprintf("example.test. DS %d 13 2 %s",
			newKSK("example.test.").KeyTag(), strings.Repeat("AB", 32)),
			how: plain(newKSK("example.test."), zsk)}, www,
			"bogus; example.test. bogus no-key; www.example.test. answer bogus above"},
		{"SEC02: DS, not signed", scenario{ds: other.ToDS(dns.SHA256).String()}, www,
			"bogus; example.test. bogus unsigned; www.example.test. answer bogus above"},
		{"SEC03: expired", scenario{damage: expired(www)}, www, "bogus; " + ok + "www.example.test. answer bogus expired"},
		{"SEC03: expired keys", scenario{damage: expired("example.test. DNSKEY")}, www,
			"bogus; example.test. bogus expired; www.example.test. answer bogus above"},
		{"SEC03: all expired", scenario{later: 15 * day}, www,
			"bogus; .: the signature of . DNSKEY by key 1 expired on 2000-01-15 00:00:00 UTC; " +
				"test.: the parent zone . is bogus, so all zones below it are bogus; example.test. bogus above; " +
				"www.example.test. answer bogus above"},
		{"SEC03: not yet valid", scenario{damage: func(z *signed) {
			z.resign(rk(www), bubble.Add(day), bubble.Add(2*day))
		}}, www,
			"bogus; " + ok + "www.example.test. answer bogus not-yet-valid"},
		{"SEC03: on one server", scenario{damage2: expired(www)}, www, "secure; " + ok + "www.example.test. answer secure"},
		{"signature missing", scenario{damage: func(z *signed) { delete(z.sigs, rk(www)) }}, www,
			"bogus; " + ok + "www.example.test. answer bogus signature-missing"},
		{"data changed", scenario{damage: func(z *signed) { z.sets[rk(www)][0].(*dns.A).A[3]++ }}, www,
			"bogus; " + ok + "www.example.test. answer bogus signature-wrong"},
		{"keys not signed", scenario{damage: func(z *signed) { delete(z.sigs, rk("example.test. DNSKEY")) }}, www,
			"bogus; example.test. bogus keys-unsigned; www.example.test. answer bogus above"},
		{"signed by a key that is gone", scenario{damage: func(z *signed) {
			z.sets[rk("example.test. DNSKEY")] = z.sets[rk("example.test. DNSKEY")][:1]
			z.resign(rk("example.test. DNSKEY"), bubble.Add(-day), bubble.Add(day))
		}}, www, "bogus; " + ok + "www.example.test. answer bogus signature-wrong"},
		{"DS not signed", scenario{parent: func(z *signed) { delete(z.sigs, rk("example.test. DS")) }}, www,
			"bogus; example.test. bogus signature-missing; www.example.test. answer bogus above"},
		{"DS denied wrongly", scenario{ds: "none", how: plain(newKSK("example.test.")),
			parent: func(z *signed) { delete(z.sigs, rk("example.test. NSEC")) }}, www,
			"bogus; example.test. bogus signature-missing; www.example.test. answer bogus above"},
		{"SEC04: a proof of something else", scenario{damage: func(z *signed) {
			z.denials["example.test."].(*dns.NSEC).NextDomain = "a.example.test."
			z.resign(rk("example.test. NSEC"), bubble.Add(-day), bubble.Add(day))
		}}, "aa.example.test. A", "bogus; " + ok + "aa.example.test. nxdomain bogus denial"},
		{"SEC04: a type that is there", scenario{damage: func(z *signed) {
			n := z.denials["www.example.test."].(*dns.NSEC)
			n.TypeBitMap = []uint16{dns.TypeA, dns.TypeTXT, dns.TypeRRSIG, dns.TypeNSEC}
			z.resign(rk("www.example.test. NSEC"), bubble.Add(-day), bubble.Add(day))
		}}, "www.example.test. TXT", "bogus; " + ok + "www.example.test. nodata bogus denial"},
		{"SEC04: no proof", scenario{damage: func(z *signed) { z.order, z.denials = nil, nil }}, "nope.example.test. A",
			"bogus; " + ok + "nope.example.test. nxdomain bogus denial"},
		{"SEC04: expired proof", scenario{damage: func(z *signed) {
			for _, rec := range z.denials {
				z.resign(keyOf(rec), bubble.Add(-30*day), bubble.Add(-day))
			}
		}}, "nope.example.test. A", "bogus; " + ok + "nope.example.test. nxdomain bogus expired"},
		{"SEC04: a wildcard without proof", scenario{damage: func(z *signed) { z.order, z.denials = nil, nil }},
			"x.wild.example.test. A",
			"bogus; " + ok + "x.wild.example.test. answer bogus denial wildcard"},
		{"SEC04: SOA not signed", scenario{damage: func(z *signed) { delete(z.sigs, rk("example.test. SOA")) }},
			"nope.example.test. A",
			"bogus; " + ok + "nope.example.test. nxdomain bogus signature-missing"},
		{"SHA-1 beside a better digest",
			scenario{ds: newKSK("example.test.").ToDS(dns.SHA1).String() + "\n" + other.ToDS(dns.SHA256).String(),
				how: plain(newKSK("example.test."))}, www,
			"bogus; example.test. bogus no-key; www.example.test. answer bogus above"},
		{"SHA-1 alone", scenario{ds: newKSK("example.test.").ToDS(dns.SHA1).String(), how: plain(newKSK("example.test."))},
			www,
			"secure; " + ok + "www.example.test. answer secure"},
		{"a key that was revoked", scenario{
			how: plain(newKey("example.test.", 257|dns.REVOKE, dns.ECDSAP256SHA256, 256, 1))}, www,
			"bogus; example.test. bogus no-key; www.example.test. answer bogus above"},
		{"SEC05: weak, and good", scenario{how: plain(weak)}, www, "secure; " + ok + "www.example.test. answer secure"},
		{"an algorithm that nobody verifies", scenario{ds: md5, how: plain(newKSK("example.test."))}, www,
			"insecure; example.test. insecure algorithm; www.example.test. answer insecure above"},
		{"SEC09: keys differ", scenario{second: &second}, www, "secure; " + ok + "www.example.test. answer secure"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := tt.scenario.judge(t, tt.q)
				got := strings.ReplaceAll(summary(r), fmt.Sprintf("by key %d", newKSK(".").KeyTag()), "by key 1")
				if got != tt.want {
					t.Errorf("got  %s\nwant %s\nwhy %s", got, tt.want, r.Why)
				}
			})
		})
	}
}

// TestDetails checks the data that operators need to repair a zone.
func TestDetails(t *testing.T) {
	const www = "www.example.test. A"
	ksk, zsk := newKSK("example.test."), newKey("example.test.", 256, dns.ECDSAP256SHA256, 256, 2)
	third := newKey("example.test.", 257, dns.ECDSAP256SHA256, 256, 3)
	weak := newKey("example.test.", 257, dns.RSASHA1, 1024, 1)
	second := plain(third)
	cds := func(ds *dns.DS) string { return ds.ToCDS().String() + "\n" }
	servers := "[192.0.2.21 192.0.2.22]"
	tests := []struct {
		name     string
		scenario scenario
		q        string
		show     func(z secure.Zone) string
		want     string
	}{
		{"DS", scenario{}, www, showDS, fmt.Sprintf("%d 13 2 true [192.0.2.11]", ksk.KeyTag())},
		{"DS without its key", scenario{ds: third.ToDS(dns.SHA384).String(), how: plain(ksk)}, www, showDS,
			fmt.Sprintf("%d 13 4 false [192.0.2.11]", third.KeyTag())},
		{"keys", scenario{how: plain(ksk, zsk)}, www, showKeys, sorted(
			fmt.Sprintf("%d 13 257 256 keys %s", ksk.KeyTag(), servers),
			fmt.Sprintf("%d 13 256 256 zone %s", zsk.KeyTag(), servers))},
		{"weak", scenario{how: plain(weak)}, www, showKeys,
			fmt.Sprintf("%d 5 257 1024 keys zone %s", weak.KeyTag(), servers)},
		{"key sets", scenario{how: plain(ksk), second: &second}, www, showSets,
			fmt.Sprintf("[%d] secure [192.0.2.21]; [%d] bogus no-key [192.0.2.22]", ksk.KeyTag(), third.KeyTag())},
		{"not signed on one server", scenario{how: plain(ksk), second: &signing{}}, www, showSets,
			fmt.Sprintf("[%d] secure [192.0.2.21]; [] bogus unsigned [192.0.2.22]", ksk.KeyTag())},
		{"NSEC", scenario{}, www, showDenial, "NSEC 0  ok"},
		{"NSEC3", scenario{how: signing{nsec3: true, iterations: 3, salt: "AB", optOut: true}}, www, showDenial,
			"NSEC3 3 AB opt-out ok"},
		{"many iterations", scenario{how: signing{nsec3: true, iterations: 150}}, www, showDenial, "NSEC3 150  ok"},
		{"no proof", scenario{damage: func(z *signed) { z.order, z.denials = nil, nil }}, www, showDenial,
			"none 0  a negative reply of example.test. has no proof: neither NSEC nor NSEC3 records"},
		{"no CDS", scenario{}, www, showChild, "seen"},
		{"CDS", scenario{how: plain(ksk), zone: cds(ksk.ToDS(dns.SHA256)) + ksk.ToCDNSKEY().String()}, www, showChild,
			fmt.Sprintf("seen CDS %d true true, CDNSKEY %d true true", ksk.KeyTag(), ksk.KeyTag())},
		{"CDS for another", scenario{how: plain(ksk), zone: cds(third.ToDS(dns.SHA256))}, www, showChild,
			fmt.Sprintf("seen CDS %d false false pending; the CDS and CDNSKEY records of example.test. match none of its keys",
				third.KeyTag())},
		{"CDS and CDNSKEY differ", scenario{how: plain(ksk, third),
			zone: cds(ksk.ToDS(dns.SHA256)) + third.ToCDNSKEY().String()}, www, showChild,
			fmt.Sprintf("seen CDS %d true true, CDNSKEY %d true true; CDS is for the keys [%d], CDNSKEY for [%d]",
				ksk.KeyTag(), third.KeyTag(), ksk.KeyTag(), third.KeyTag())},
		{"delete", scenario{how: plain(ksk), zone: "@ CDS 0 0 0 00\n@ CDNSKEY 0 3 0 AA=="}, www, showChild,
			"seen CDS 0 false false, CDNSKEY 768 false false delete pending"},
		{"signed without DS", scenario{ds: "none", how: plain(ksk)}, www, showKeys,
			fmt.Sprintf("%d 13 257 256 keys zone %s", ksk.KeyTag(), servers)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if got := tt.show(zoneOf(tt.scenario.judge(t, tt.q), "example.test.")); got != tt.want {
					t.Errorf("got  %s\nwant %s", got, tt.want)
				}
			})
		})
	}
}

func sorted(a, b string) string {
	var m, n int
	fmt.Sscan(a, &m)
	fmt.Sscan(b, &n)
	if n < m {
		a, b = b, a
	}
	return a + "; " + b
}

func showDS(z secure.Zone) string {
	var out []string
	for _, d := range z.DS {
		out = append(out, fmt.Sprint(d.KeyTag, d.Algorithm, d.DigestType, d.Matches, d.From))
	}
	return strings.Join(out, "; ")
}

func showKeys(z secure.Zone) string {
	var out []string
	for _, k := range z.Keys {
		s := fmt.Sprint(k.KeyTag, k.Algorithm, k.Flags, k.Bits)
		if k.SignsKeys {
			s += " keys"
		}
		if k.SignsZone {
			s += " zone"
		}
		out = append(out, fmt.Sprint(s, " ", k.From))
	}
	return strings.Join(out, "; ")
}

func showSets(z secure.Zone) string {
	var out []string
	for _, k := range z.KeySets {
		out = append(out, strings.Join(strings.Fields(fmt.Sprintf("%v %s %s %v", k.KeyTags, k.State, k.Cause, k.From)), " "))
	}
	return strings.Join(out, "; ")
}

func showDenial(z secure.Zone) string {
	out := fmt.Sprintf("%s %d %s", z.Denial.Kind, z.Denial.Iterations, z.Denial.Salt)
	if z.Denial.OptOut {
		out += " opt-out"
	}
	if z.Denial.OK {
		return out + " ok"
	}
	if z.Denial.Subject == "" {
		return "no subject"
	}
	return out + " " + z.Denial.Problem
}

func showChild(z secure.Zone) string {
	var out []string
	for _, w := range z.Child.Records {
		out = append(out, fmt.Sprint(w.Type, " ", w.KeyTag, w.Matches, w.AtParent))
	}
	s := "seen " + strings.Join(out, ", ")
	if z.Child.Delete {
		s += " delete"
	}
	if z.Child.Pending {
		s += " pending"
	}
	if z.Child.Problem != "" {
		s += "; " + z.Child.Problem
	}
	return strings.TrimSpace(s)
}

// TestSignatures checks that signatures that expire soon and expired ones are in the result.
func TestSignatures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		expire := func(z *signed) { z.resign(rk("example.test. SOA"), bubble.Add(-day), bubble.Add(11*day)) }
		r := scenario{later: 12 * day, damage: expire}.judge(t, "www.example.test. A")
		soon, over := 0, 0
		for _, s := range zoneOf(r, "example.test.").Signatures {
			switch {
			case s.Type == "SOA" && !s.Valid && s.Cause == secure.Expired && len(s.From) == 2 && s.Problem != "":
				over++
			case s.Valid && s.Expiration.Sub(r.At) == 2*day:
				soon++
			default:
				t.Errorf("%+v", s)
			}
		}
		if over == 0 || soon < 3 {
			t.Errorf("%d end soon, %d have ended", soon, over)
		}
	})
}

// TestExpires checks that the first relevant signature to expire is reported.
func TestExpires(t *testing.T) {
	end := func(k string, days int) func(*signed) {
		return func(z *signed) { z.resign(rk(k), bubble.Add(-day), bubble.Add(time.Duration(days)*day)) }
	}
	tests := []struct {
		name     string
		scenario scenario
		q        string
		days     int
		of       string
	}{
		{"all alike", scenario{}, "www.example.test. A", 14, ". DNSKEY"},
		{"its own", scenario{damage: end("www.example.test. A", 3)}, "www.example.test. A", 3, "www.example.test. A"},
		{"on one server", scenario{damage2: end("www.example.test. A", 2)}, "www.example.test. A", 2, "www.example.test. A"},
		{"another's", scenario{damage: end("ns1.example.test. A", 3)}, "www.example.test. A", 14, ". DNSKEY"},
		{"keys", scenario{damage: end("example.test. DNSKEY", 5)}, "www.example.test. A", 5, "example.test. DNSKEY"},
		{"DS", scenario{parent: end("example.test. DS", 4)}, "www.example.test. A", 4, "example.test. DS"},
		{"a denial", scenario{damage: end("example.test. SOA", 6)}, "nope.example.test. A", 6, "example.test. SOA"},
		{"no denial", scenario{damage: end("example.test. SOA", 6)}, "www.example.test. A", 14, ". DNSKEY"},
		{"an alias", scenario{damage: end("alias.example.test. CNAME", 6)}, "alias.example.test. A", 6,
			"alias.example.test. CNAME"},
		{"not secure", scenario{ds: "none"}, "www.example.test. A", 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := tt.scenario.judge(t, tt.q)
				want := bubble.Add(time.Duration(tt.days) * day)
				if tt.days == 0 {
					want = time.Time{}
				}
				if !r.Expires.Equal(want) || r.ExpiresOf != tt.of {
					t.Errorf("%v of %q, want %v of %q", r.Expires, r.ExpiresOf, want, tt.of)
				}
			})
		})
	}
}

// TestUnknown removes replies from a trace. Nothing may become bogus because of that.
func TestUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, q := range []string{"www.example.test. A", "nope.example.test. A", "far.example.test. A"} {
			trace, anchors := scenario{}.trace(t, q)
			now := time.Now()
			want := validate(trace, anchors, now).State
			for i := range trace.Exchanges {
				for _, until := range []int{i + 1, len(trace.Exchanges)} { // one reply is missing, or all from there on
					cut := *trace
					cut.Exchanges = append(append([]iterate.Exchange(nil), trace.Exchanges[:i]...), trace.Exchanges[until:]...)
					r := validate(&cut, anchors, now)
					if r.State != want && r.State != secure.Unknown {
						t.Errorf("without %v to %v: %s", trace.Exchanges[i].Question, trace.Exchanges[i].Server, summary(r))
					}
					for _, z := range r.Zones {
						if z.State == secure.Bogus {
							t.Errorf("without %v to %v: %s is bogus: %s", trace.Exchanges[i].Question, trace.Exchanges[i].Server, z.Name,
								z.Why)
						}
					}
				}
			}
			plain := *trace
			plain.DNSSEC = false
			for i, r := range []secure.Result{validate(&plain, anchors, now), validate(trace, []secure.Anchor{}, now)} {
				if r.State != secure.Unknown || r.Zones[0].State != secure.Unknown {
					t.Errorf("%d: %s", i, summary(r))
				}
			}
			if r := validate(trace, []secure.Anchor{secure.UnsignedRoot()}, now); r.State != secure.Insecure {
				t.Errorf("with a root that is not signed: %s", summary(r))
			}
		}
	})
}

// TestPlain has servers without EDNS support: missing signatures must prove nothing.
func TestPlain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		trace, anchors := scenario{damage: func(z *signed) { clear(z.sigs) }}.trace(t, "www.example.test. A")
		for i := range trace.Exchanges {
			if e := &trace.Exchanges[i]; e.Zone.String() == "example.test." {
				e.EDNS = false
			}
		}
		if r := validate(trace, anchors, time.Now()); r.State != secure.Unknown {
			t.Errorf("%s", summary(r))
		}
	})
}

func TestRootAnchors(t *testing.T) {
	a := secure.RootAnchors()
	if len(a) != 2 || a[0].KeyTag != 20326 || a[1].KeyTag != 38696 || a[0].Zone != dnsname.Root || len(a[1].Digest) != 64 {
		t.Errorf("%+v", a)
	}
	for _, text := range []string{"", ". NS a.", "x"} {
		if _, err := secure.ParseAnchor(text); err == nil {
			t.Errorf("ParseAnchor(%q) is no error", text)
		}
	}
	k := newKSK("example.test.")
	got, err := secure.ParseAnchor(k.String())
	if err != nil || got.KeyTag != k.KeyTag() || !strings.EqualFold(got.Digest, k.ToDS(dns.SHA256).Digest) {
		t.Errorf("%+v, %v", got, err)
	}
	synctest.Test(t, func(t *testing.T) {
		trace, _ := scenario{}.trace(t, "www.example.test. A")
		if r := validate(trace, secure.RootAnchors(), time.Now()); r.Zones[0].Cause != secure.NoKey ||
			r.State != secure.Bogus {
			t.Errorf("another root: %s", summary(r))
		}
	})
}
