package wire_test

import (
	"encoding/hex"
	"reflect"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/wire"
)

var key = wire.TSIGKey{Name: dnsname.MustParse("key.test."), Algorithm: dnsname.MustParse("hmac-sha256."),
	Secret: []byte("secret")}

const base64Secret = "c2VjcmV0"

func query(t testing.TB) []byte {
	t.Helper()
	msg, err := new(dns.Msg).SetQuestion("example.org.", dns.TypeSOA).Pack()
	if err != nil {
		t.Fatal(err)
	}
	return msg
}

// TestChain runs an exchange between two chains and checks it with another implementation: a query, and an answer of
// four messages, of which the third is not signed.
func TestChain(t *testing.T) {
	now := time.Now()
	stamp := wire.TSIG{Time: uint64(now.Unix())}
	client, server := wire.TSIGChain{Key: key}, wire.TSIGChain{Key: key}
	prior := ""
	step := func(name string, from, to *wire.TSIGChain, timersOnly bool) []byte {
		t.Helper()
		msg := from.Sign(query(t), stamp)
		sig, ok := wire.ReadTSIG(msg)
		if !ok || sig == nil {
			t.Fatalf("%s: no TSIG", name)
		}
		if from.Size() != len(msg)-len(query(t)) {
			t.Errorf("%s: Size = %d, and %d bytes were appended", name, from.Size(), len(msg)-len(query(t)))
		}
		if code := to.Verify(msg, sig, now); code != wire.TSIGNoError {
			t.Errorf("%s: Verify = %s", name, wire.TSIGErrorText(code))
		}
		if name != "fourth" { // the library does not support unsigned messages in between
			if err := dns.TsigVerify(append([]byte(nil), msg...), base64Secret, prior, timersOnly); err != nil {
				t.Errorf("%s: the library: %v", name, err)
			}
		}
		prior = hex.EncodeToString(sig.MAC)
		return msg
	}
	step("query", &client, &server, false)
	step("first", &server, &client, false)
	step("second", &server, &client, true)
	third := query(t)
	server.Unsigned(third)
	client.Unsigned(third)
	step("fourth", &server, &client, true)

	server.Unsigned(third)
	msg := server.Sign(query(t), stamp)
	sig, _ := wire.ReadTSIG(msg)
	if code := client.Verify(msg, sig, now); code != wire.TSIGBadSig {
		t.Errorf("a message in between is missing: Verify = %s, want BADSIG", wire.TSIGErrorText(code))
	}
}

// TestUnsignedIsNotKept checks the memory of a chain: a peer may send 99 messages of 64 KiB before a signed one.
func TestUnsignedIsNotKept(t *testing.T) {
	c := wire.TSIGChain{Key: key}
	message := make([]byte, wire.MaxSize)
	c.Unsigned(message)
	if n := testing.AllocsPerRun(1, func() {
		for range 98 {
			c.Unsigned(message)
		}
	}); n > 0 {
		t.Errorf("%v allocations for messages without a signature", n)
	}
}

func TestVerifyErrors(t *testing.T) {
	now := time.Now()
	tests := []struct {
		name   string
		change func(*wire.TSIGKey, *wire.TSIG)
		want   string
	}{
		{"as it is", func(*wire.TSIGKey, *wire.TSIG) {}, "NOERROR"},
		{"another key", func(k *wire.TSIGKey, _ *wire.TSIG) { k.Name = dnsname.MustParse("other.test.") }, "BADKEY"},
		{"another algorithm", func(k *wire.TSIGKey, _ *wire.TSIG) { k.Algorithm = dnsname.MustParse("hmac-sha512.") },
			"BADKEY"},
		{"another secret", func(k *wire.TSIGKey, _ *wire.TSIG) { k.Secret = []byte("guess") }, "BADSIG"},
		{"another id", func(_ *wire.TSIGKey, s *wire.TSIG) { s.ID++ }, "BADSIG"},
		{"another time", func(_ *wire.TSIGKey, s *wire.TSIG) { s.Time++ }, "BADSIG"},
		{"less than half a MAC", func(_ *wire.TSIGKey, s *wire.TSIG) { s.MAC = s.MAC[:15] }, "FORMERR"},
		{"half a MAC", func(_ *wire.TSIGKey, s *wire.TSIG) { s.MAC = s.MAC[:16] }, "BADTRUNC"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			client, server := wire.TSIGChain{Key: key}, wire.TSIGChain{Key: key}
			msg := client.Sign(query(t), wire.TSIG{Time: uint64(now.Unix())})
			sig, _ := wire.ReadTSIG(msg)
			tt.change(&server.Key, sig)
			if got := wire.TSIGErrorText(server.Verify(msg, sig, now)); got != tt.want {
				t.Errorf("Verify = %s, want %s", got, tt.want)
			}
		})
	}
}

// FuzzReadTSIG checks that no message panics, and that a record survives being written and read again.
func FuzzReadTSIG(f *testing.F) {
	f.Add(query(f))
	chain := wire.TSIGChain{Key: key}
	f.Add(chain.Sign(query(f), wire.TSIG{Time: 1, Error: wire.TSIGBadTime, Other: []byte("123456")}))
	f.Fuzz(func(t *testing.T, msg []byte) {
		sig, ok := wire.ReadTSIG(msg)
		if !ok || sig == nil {
			return
		}
		again, ok := wire.ReadTSIG(sig.Append(make([]byte, wire.HeaderSize)))
		if !ok || again == nil {
			t.Fatalf("%+v cannot be read again", sig)
		}
		sig.At = wire.HeaderSize
		if !reflect.DeepEqual(sig, again) {
			t.Errorf("read again: %+v, want %+v", again, sig)
		}
	})
}
