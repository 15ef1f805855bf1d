package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/hold"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/ovn"
	"github.com/nameplane/nameplane/kubernetes/test/must"
)

// clusterState is the input that the engine reads in a test.
type clusterState struct {
	mu sync.Mutex
	in reading
}

func (w *clusterState) set(e *engine, names []enforce.Pattern, status learned) {
	w.mu.Lock()
	defer w.mu.Unlock()
	in := reading{status: status, used: map[enforce.Pattern]bool{}, errs: map[string][]error{"ns1": nil}}
	in.input = ovn.Input{V4: true, ClusterSubnets: []netip.Prefix{prefix("10.128.0.0/14")}}
	f := enforce.Firewall{Namespace: "ns1"}
	for i, p := range names {
		f.Rules = append(f.Rules, enforce.Rule{Index: i, Action: enforce.Allow, Kind: enforce.ByName, Pattern: p})
		in.used[p] = true
	}
	in.input.Firewalls = []enforce.Firewall{f}
	w.in = in
	e.Changed()
}

func start(t *testing.T, d *tables, options ...func(*engine)) (*engine, *clusterState) {
	t.Helper()
	e := newEngine(d, time.Hour)
	for _, o := range options {
		o(e)
	}
	w := &clusterState{}
	e.read = func(context.Context) (reading, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.in, nil
	}
	w.set(e, []enforce.Pattern{www}, nil)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		<-done
	})
	return e, w
}

func program(e *engine, p enforce.Pattern, lease time.Duration, addrs ...string) error {
	l := hold.Learned{Pattern: p.String(), Lease: lease}
	for _, a := range addrs {
		l.Addrs = append(l.Addrs, addr(a))
	}
	return e.Program(context.Background(), l)
}

func settle() {
	time.Sleep(time.Second)
	synctest.Wait()
}

func expect(t *testing.T, d *tables, p enforce.Pattern, want ...string) {
	t.Helper()
	var list []netip.Addr
	for _, s := range want {
		list = append(list, addr(s))
	}
	if diff := cmp.Diff(list, d.set(p), same); diff != "" {
		t.Errorf("set of %s (-want +got)\n%s", p, diff)
	}
}

// TestProgram checks the short path: one write, its confirmation, and a lease that ends. After that only existing
// connections continue.
func TestProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newTables()
		e, _ := start(t, d)
		settle()
		before, begun := d.writes, time.Now()
		if err := program(e, www, 10*time.Second, "192.0.2.1", "10.128.0.5", "2001:db8::1"); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took != d.trip+d.lag {
			t.Errorf("took %v, want one write and its confirmation", took)
		}
		expect(t, d, www, "192.0.2.1") // neither pods nor families that the cluster does not have
		settle()
		begun = time.Now()
		if err := program(e, www, 10*time.Second, "192.0.2.1"); err != nil || time.Since(begun) != 0 {
			t.Errorf("known address: %v after %v", err, time.Since(begun))
		}
		if n := d.writes - before; n != 1 {
			t.Errorf("%d writes for one address", n)
		}
		time.Sleep(9 * time.Second)
		expect(t, d, www, "192.0.2.1")
		settle()
		settle()
		expect(t, d, www)
		if diff := cmp.Diff([]netip.Addr{addr("192.0.2.1")}, d.kept(www), same); diff != "" {
			t.Errorf("kept (-want +got)\n%s", diff)
		}
	})
}

// TestProgramWaitsForTheSwitch checks that a write is not taken for its confirmation, not even for known addresses.
func TestProgramWaitsForTheSwitch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newTables()
		e, _ := start(t, d)
		settle()
		d.lag = 300 * time.Millisecond
		first := make(chan error, 1)
		go func() { first <- program(e, www, time.Minute, "192.0.2.1") }()
		time.Sleep(100 * time.Millisecond)
		begun := time.Now()
		if err := program(e, www, time.Minute, "192.0.2.1"); err != nil || time.Since(begun) < 200*time.Millisecond {
			t.Errorf("the second asker overtook: %v after %v", err, time.Since(begun))
		}
		if err := <-first; err != nil {
			t.Error(err)
		}
		d.lag = time.Hour
		if err := program(e, www, time.Minute, "192.0.2.2"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a switch that does not answer: %v", err)
		}
	})
}

// TestProgramCoalesces checks that requests that arrive during a write are combined in the next one.
func TestProgramCoalesces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newTables()
		e, _ := start(t, d)
		settle()
		before := d.writes
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				if err := program(e, www, time.Minute, fmt.Sprintf("192.0.2.%d", i)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := d.writes - before; n > 3 || d.extending < 30 {
			t.Errorf("%d writes, of at most %d addresses", n, d.extending)
		}
		if len(d.set(www)) != 100 {
			t.Errorf("%d addresses", len(d.set(www)))
		}
	})
}

// TestProgramBeforeTheRule checks an answer that comes before the firewall: it counts when the firewall exists. A name
// with a rule but no set yet waits for the pass.
func TestProgramBeforeTheRule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newTables()
		e, w := start(t, d)
		settle()
		if err := program(e, wild, time.Minute, "192.0.2.7"); err != nil {
			t.Error(err)
		}
		w.set(e, []enforce.Pattern{www, wild}, nil)
		settle()
		expect(t, d, wild, "192.0.2.7")
		d.mu.Lock()
		d.rows.Sets = nil // by hand
		d.mu.Unlock()
		if err := program(e, www, time.Minute, "192.0.2.8"); err != nil {
			t.Error(err)
		}
		expect(t, d, www, "192.0.2.8")
		settle()
		expect(t, d, wild, "192.0.2.7")
	})
}

// TestProgramWhileLeaving requests an address while it is being removed. Whatever the order, an acknowledged address is
// present.
func TestProgramWhileLeaving(t *testing.T) {
	for at := 990 * time.Millisecond; at < 1100*time.Millisecond; at += time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			d := newTables()
			d.passTrip = 20 * time.Millisecond // so that the short path could overtake
			e, _ := start(t, d)
			settle()
			if err := program(e, www, time.Second, "192.0.2.1"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(at)
			if err := program(e, www, 10*time.Second, "192.0.2.1"); err != nil {
				t.Fatal(err)
			}
			for range 100 {
				if len(d.set(www)) != 1 {
					t.Fatalf("%v: acknowledged, and not there", at)
				}
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
}

// TestLeaseDuringMerge leases an address of each of many names while a pass merges them. Either the pass sees the
// lease, or the request sees that it must write.
func TestLeaseDuringMerge(t *testing.T) {
	e := newEngine(newTables(), time.Hour)
	in := reading{input: ovn.Input{V4: true}, used: map[enforce.Pattern]bool{}}
	for i := range 10 * yieldEvery {
		in.used[must.Pattern(fmt.Sprintf("n%d.example.com", i))] = true
	}
	until, turns := time.Now().Add(time.Hour), 0
	written := map[enforce.Pattern]bool{}
	e.leaseTable.yieldLock = func() {
		e.mu.Unlock()
		defer e.mu.Lock()
		turns++
		for p := range in.used {
			if missing, _, _ := e.tryLease(p, []netip.Addr{addr("192.0.2.1")}, until); len(missing) > 0 {
				written[p] = true
			}
		}
	}
	w, _ := e.merge(in, ovn.Rows{})
	if turns < 9 {
		t.Errorf("others had %d turns", turns)
	}
	for p := range in.used {
		if len(w.Learned[p]) == 0 && !written[p] {
			t.Fatalf("%s: leased, and nobody writes it", p)
		}
	}
}

// TestPasses checks that the database follows the statuses of DNSNameResolvers, and that changes of others are
// repaired.
func TestPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newTables()
		e, w := start(t, d)
		w.set(e, []enforce.Pattern{www}, learned{www: {addr("192.0.2.1"), addr("192.0.2.2")}})
		settle()
		expect(t, d, www, "192.0.2.1", "192.0.2.2")
		w.set(e, []enforce.Pattern{www}, learned{www: {addr("192.0.2.2")}})
		settle()
		expect(t, d, www, "192.0.2.2")
		if _, err := d.write(func() { d.rows.Sets[0].Addresses = []string{"203.0.113.1"} }); err != nil {
			t.Fatal(err)
		}
		settle()
		expect(t, d, www, "192.0.2.2")
		w.set(e, nil, nil)
		settle()
		if len(d.rows.Sets) != 0 {
			t.Errorf("sets of no rule: %+v", d.rows.Sets)
		}
	})
}

// latestSaid is the last reported outcome.
type latestSaid struct {
	mu     sync.Mutex
	failed map[string]error
}

func (l *latestSaid) put(o outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed = maps.Clone(o.failed)
}

func (l *latestSaid) get() map[string]error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// TestPassesFailAndRecover checks a database that refuses everything for a while.
func TestPassesFailAndRecover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newTables()
		var said latestSaid
		e, w := start(t, d, func(e *engine) { e.report = said.put })
		refuse := func(err error) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.refuse = err
		}
		settle()
		refuse(errors.New("no"))
		w.set(e, []enforce.Pattern{www}, learned{www: {addr("192.0.2.1")}})
		settle()
		if last := said.get(); last["ns1"] == nil {
			t.Errorf("said %v", last)
		}
		if err := program(e, www, time.Minute, "192.0.2.9"); err == nil {
			t.Error("programmed by a database that refuses")
		}
		refuse(nil)
		settle()
		expect(t, d, www, "192.0.2.1", "192.0.2.9")
		if last := said.get(); len(last) != 0 {
			t.Errorf("still said %v", last)
		}
	})
}

// TestAnotherDatabase checks that a new database is not assumed to have the rows of the previous one.
func TestAnotherDatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newTables()
		e, _ := start(t, d)
		settle()
		if err := program(e, www, time.Minute, "192.0.2.1"); err != nil {
			t.Fatal(err)
		}
		d.mu.Lock()
		d.rows, d.epoch, d.cfg, d.hv = ovn.Rows{}, 2, 0, 0
		d.mu.Unlock()
		if err := program(e, www, time.Minute, "192.0.2.1"); err != nil {
			t.Error(err)
		}
		expect(t, d, www, "192.0.2.1")
	})
}

// TestLostAfterWrite loses the connection after the last write of a pass. The write must not be reported or count as
// programmed before it is confirmed.
func TestLostAfterWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newTables()
		unconfirmed := 0
		e, w := start(t, d, func(e *engine) {
			e.report = func(o outcome) {
				if o.mark == (ovn.Mark{}) && len(o.failed) == 0 {
					unconfirmed++
				}
			}
		})
		settle()
		d.mu.Lock()
		d.after = func() { d.epoch++ }
		d.mu.Unlock()
		w.set(e, []enforce.Pattern{www}, learned{www: {addr("192.0.2.1")}})
		settle()
		if unconfirmed > 0 {
			t.Errorf("%d outcomes are good, and nobody could confirm them", unconfirmed)
		}
		expect(t, d, www, "192.0.2.1")
	})
}

// TestRestart finds the rows of a previous agent: nothing is removed at once, and nothing counts as confirmed.
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newTables()
		e, _ := start(t, d)
		settle()
		if err := program(e, www, time.Minute, "192.0.2.1"); err != nil {
			t.Fatal(err)
		}
		settle()
		before := d
		d = newTables() // the previous agent no longer knows it
		d.rows, d.cfg, d.hv, d.lag = before.rows, before.cfg, before.hv, 100*time.Millisecond
		e, w := start(t, d)
		w.set(e, []enforce.Pattern{www}, nil)
		begun := time.Now()
		if err := program(e, www, time.Second, "192.0.2.1"); err != nil || time.Since(begun) < d.lag {
			t.Errorf("confirmed after %v, %v", time.Since(begun), err)
		}
		time.Sleep(restartLease - 2*time.Second)
		expect(t, d, www, "192.0.2.1")
	})
}

func TestExplain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newTables()
		e, _ := start(t, d)
		e.node = "node1"
		settle()
		if err := program(e, www, time.Minute, "192.0.2.1"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		got, err := e.Explain(t.Context(), www.String(), addr("192.0.2.1"))
		if err != nil || !got.Programmed || got.Node != "node1" || got.Lease.Round(time.Second) != 50*time.Second ||
			got.Age.Round(time.Second) != 10*time.Second {
			t.Errorf("Explain = %+v, %v", got, err)
		}
		if got, err := e.Explain(t.Context(), www.String(), addr("192.0.2.2")); err != nil || got.Programmed ||
			got.Lease != 0 {
			t.Errorf("Explain of another = %+v, %v", got, err)
		}
	})
}

func TestMessage(t *testing.T) {
	bad := []error{errors.New("spec.egress[1].type: no")}
	tests := []struct {
		bad    []error
		failed error
		want   string
	}{
		{nil, nil, "z: EgressFirewall Rules applied"},
		{bad, nil, "z: EgressFirewall Rules not correctly applied: spec.egress[1].type: no"},
		{bad, errNoGroup, "z: EgressFirewall Rules not correctly applied: spec.egress[1].type: no; the namespace has no " +
			"port group yet"},
		{nil, errors.New("row 3f2504e0-4f89-11d3-9a0c-0305e82c3301 is there, 5C0a0c3e-aaaa-bbbb-cccc-0123456789ab is not"),
			"z: EgressFirewall Rules not correctly applied: row … is there, … is not"},
		{slices.Repeat(bad, 7), nil, "z: EgressFirewall Rules not correctly applied: " +
			"spec.egress[1].type: no; spec.egress[1].type: no; spec.egress[1].type: no; spec.egress[1].type: no; " +
			"spec.egress[1].type: no; and 2 more"},
	}
	for _, tt := range tests {
		if got := message("z", tt.bad, tt.failed); got != tt.want {
			t.Errorf("message = %q, want %q", got, tt.want)
		}
	}
}

// TestNamesOfNoRule checks that objects that an older version left behind, and leases for their names, open nothing.
func TestNamesOfNoRule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newTables()
		e, w := start(t, d)
		w.set(e, []enforce.Pattern{www}, learned{wild: {addr("192.0.2.7")}})
		settle()
		if err := program(e, wild, time.Minute, "192.0.2.8"); err != nil {
			t.Error(err)
		}
		settle()
		for _, s := range d.rows.Sets {
			if s.IDs["k8s.ovn.org/name"] != www.String() || len(s.Addresses) > 0 {
				t.Errorf("a set of %s with %v", s.IDs["k8s.ovn.org/name"], s.Addresses)
			}
		}
		if len(d.rows.Sets) != 2 { // and one for existing connections
			t.Errorf("%d sets", len(d.rows.Sets))
		}
	})
}
