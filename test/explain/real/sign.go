package real

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// updated are the zones of BIND that tests change.
var updated = map[string]func() string{"live.com": liveZone, "new.com": newZone, "near.com": nearZone}

// sign makes keys for the root, com and the zones that tests change, and signs the first two, all with NSEC records. BIND signs the
// others, and again whenever they change. What is not signed is so by the word of its parent.
func (w *World) sign() error {
	if err := os.MkdirAll(w.keys(), 0o755); err != nil {
		return err
	}
	w.signed = map[string]string{}
	for zone := range updated {
		key, err := w.keygen("-k", "default", zone)
		if err != nil {
			return err
		}
		if err := w.dsset(zone, key); err != nil {
			return err
		}
	}
	for _, zone := range []string{"com.", "."} { // the DS records of com are in the root
		for _, args := range [][]string{{"-f", "KSK"}, nil} {
			if _, err := w.keygen(append(append([]string{"-a", "ECDSAP256SHA256"}, args...), zone)...); err != nil {
				return err
			}
		}
		if err := w.signZone(zone); err != nil {
			return err
		}
	}
	return w.trust()
}

func (w *World) keys() string { return filepath.Join(w.Dir, "keys") }

// keygen makes a key, and returns the file of its public half.
func (w *World) keygen(args ...string) (string, error) {
	out, err := output(context.Background(), "dnssec-keygen", append([]string{"-q", "-K", w.keys()}, args...)...)
	return filepath.Join(w.keys(), strings.TrimSpace(out)+".key"), err
}

// dsset writes the DS record of a key to where the parent's signer looks for it.
func (w *World) dsset(zone, key string) error {
	ds, err := output(context.Background(), "dnssec-dsfromkey", "-2", key)
	if err != nil {
		return err
	}
	_, err = w.file(filepath.Join("keys", "dsset-"+zone+"."), ds)
	return err
}

func (w *World) signZone(zone string) error {
	text := map[string]func() string{"com.": comZone, ".": rootZone}[zone]()
	in, err := w.file(filepath.Join("keys", "zone."+zone), "$ORIGIN "+zone+"\n"+text)
	if err != nil {
		return err
	}
	if _, err := output(context.Background(), "dnssec-signzone", "-S", "-g", "-K", w.keys(), "-d", w.keys(), "-o", zone, "-f", in+".signed", in); err != nil {
		return err
	}
	signed, err := os.ReadFile(in + ".signed")
	w.signed[zone] = string(signed)
	return err
}

// trust makes the key of the root one that is known without asking.
func (w *World) trust() error {
	text, err := os.ReadFile(filepath.Join(w.keys(), "dsset-."))
	if err != nil {
		return err
	}
	rec, err := dns.NewRR(string(text))
	if err != nil {
		return err
	}
	ds, ok := rec.(*dns.DS)
	if !ok {
		return fmt.Errorf("the root has no DS record: %s", text)
	}
	w.anchor = ds
	w.Anchors, err = w.file("anchors", ds.String()+"\n")
	return err
}

// signing waits until BIND has signed its zones: a resolver that comes earlier remembers that they are bogus.
func (w *World) signing() error {
	ctx, cancel := context.WithTimeout(context.Background(), startFor)
	defer cancel()
	for zone := range updated {
		m := new(dns.Msg)
		m.SetQuestion(zone+".", dns.TypeSOA)
		m.SetEdns0(1232, true)
		for {
			in, _, err := (&dns.Client{Timeout: time.Second}).ExchangeContext(ctx, m, beta+":53")
			if err == nil && len(in.Answer) > 1 {
				break
			}
			if ctx.Err() != nil {
				return fmt.Errorf("%s is not signed: %v, %v\n%s", zone, in, err, w.Logs())
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	return nil
}
