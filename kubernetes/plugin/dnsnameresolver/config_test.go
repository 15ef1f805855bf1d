package dnsnameresolver

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/coredns/caddy"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nameplane/nameplane/kubernetes/internal/enforce/hold"
)

func TestParse(t *testing.T) {
	changed := func(f func(*options)) options {
		o := defaults()
		f(&o)
		return o
	}
	tests := []struct {
		text string
		want options
	}{
		{"ocp_dnsnameresolver", defaults()},
		{"ocp_dnsnameresolver {\n}", defaults()},
		{"ocp_dnsnameresolver {\n namespaces openshift-ovn-kubernetes \n}",
			changed(func(o *options) { o.namespaces = []string{"openshift-ovn-kubernetes"} })},
		{"ocp_dnsnameresolver {\n namespaces a b\n minTTL 10\n failureThreshold 3\n}", changed(func(o *options) {
			o.namespaces, o.minTTL, o.threshold = []string{"a", "b"}, 10*time.Second, 3
		})},
		{"ocp_dnsnameresolver {\n hold off\n}", changed(func(o *options) { o.wait = waitNone })},
		{"ocp_dnsnameresolver {\n hold status\n on_timeout drop\n}",
			changed(func(o *options) { o.wait, o.onTimeout = waitStatus, drop })},
		{"ocp_dnsnameresolver {\n hold status 1s\n on_timeout answer\n}",
			changed(func(o *options) { o.wait, o.timeout = waitStatus, time.Second })},
		{"ocp_dnsnameresolver {\n hold 100ms\n on_timeout servfail\n agents 127.0.0.1:6642 [::1]:6642\n tls c k a\n}",
			changed(func(o *options) {
				o.timeout, o.onTimeout, o.agents = 100*time.Millisecond, servfail, []string{"127.0.0.1:6642", "[::1]:6642"}
				o.tls = hold.Files{Cert: "c", Key: "k", CA: "a", Peers: []string{hold.AgentName}}
			})},
		{"ocp_dnsnameresolver {\n agents service ns/svc:6642\n tls c k a other\n}", changed(func(o *options) {
			o.service = service{"ns", "svc", "6642"}
			o.tls = hold.Files{Cert: "c", Key: "k", CA: "a", Peers: []string{"other"}}
		})},
		{"ocp_dnsnameresolver {\n lease 0\n deep\n max_names 5\n max_bytes 6000\n kubeconfig /x\n}",
			changed(func(o *options) {
				o.lease, o.deep, o.maxNames, o.maxBytes, o.kubeconfig = 0, true, 5, 6000, "/x"
			})},
		{"ocp_dnsnameresolver {\n refuse 10.96.0.0/12 2001:db8::1\n refuse 192.0.2.7/24\n permit 10.96.0.10\n}",
			changed(func(o *options) {
				o.refuse = []netip.Prefix{netip.MustParsePrefix("10.96.0.0/12"), netip.MustParsePrefix("2001:db8::1/128"),
					netip.MustParsePrefix("192.0.2.0/24")}
				o.permit = []netip.Prefix{netip.MustParsePrefix("10.96.0.10/32")}
			})},
		{"ocp_dnsnameresolver {\n maxTTL 3600\n nat64 2001:db8:64::/96 2001:db8:65::/64\n}", changed(func(o *options) {
			o.maxTTL, o.nat64 = time.Hour,
				[]netip.Prefix{netip.MustParsePrefix("2001:db8:64::/96"), netip.MustParsePrefix("2001:db8:65::/64")}
		})},
		{"ocp_dnsnameresolver {\n permit nodes\n}", changed(func(o *options) { o.permitNodes = true })},
		{"ocp_dnsnameresolver {\n permit services 192.0.2.1\n permit 192.0.2.2\n}", changed(func(o *options) {
			o.permitServices, o.permit = true,
				[]netip.Prefix{netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("192.0.2.2/32")}
		})},
	}
	for _, tt := range tests {
		got, err := parse(caddy.NewTestController("dns", tt.text))
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(options{}, service{}),
			cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.text, diff)
		}
	}
}

func TestParseErrors(t *testing.T) {
	tests := []struct{ block, want string }{
		{"minTTL x", "value of minTTL should be an integer: x"},
		{"minTTL 0", "value of minTTL should be greater than 0: 0"},
		{"minTTL -1", "value of minTTL should be greater than 0: -1"},
		{"maxTTL 0", "value of maxTTL should be greater than 0: 0"},
		{"maxTTL 4", "value of maxTTL should be from 5, which is minTTL, to 604800: 4"},
		{"maxTTL 604801", "value of maxTTL should be from 5, which is minTTL, to 604800: 604801"},
		{"minTTL 90000", "value of maxTTL should be from 90000, which is minTTL, to 604800: 86400"},
		{"nat64", "Wrong argument count"},
		{"nat64 2001:db8::/95", "not a prefix of NAT64"},
		{"failureThreshold 1.5", "value of failureThreshold should be an integer: 1.5"},
		{"failureThreshold 0", "value of failureThreshold should be greater than 0: 0"},
		{"minTTL", "Wrong argument count"},
		{"minTTL 1 2", "Wrong argument count"},
		{"namespaces", "Wrong argument count"},
		{"x y", `unknown property "x"`},
		{"hold", "Wrong argument count"},
		{"hold soon", "value of hold should be a duration"},
		{"hold 0", "use `hold off`"},
		{"hold -1s", "value of hold should be a duration"},
		{"hold status x", "value of hold should be a duration"},
		{"on_timeout maybe", "should be answer, servfail or drop: maybe"},
		{"agents", "Wrong argument count"},
		{"agents 127.0.0.1", "should be HOST:PORT"},
		{"agents service x", "should be NAMESPACE/NAME:PORT"},
		{"agents service x/y:", "should be NAMESPACE/NAME:PORT"},
		{"agents 127.0.0.1:1", "agents need tls"},
		{"tls a b c", "there are no agents"},
		{"tls a b", "Wrong argument count"},
		{"lease x", "value of lease should be a duration"},
		{"deep yes", "Wrong argument count"},
		{"refuse", "Wrong argument count"},
		{"refuse x", "not a network: x"},
		{"refuse nodes", "not a network: nodes"},
		{"permit", "Wrong argument count"},
		{"permit nodes x", "not a network: x"},
		{"max_names 0", "greater than 0"},
		{"max_bytes x", "should be an integer"},
		{"kubeconfig", "Wrong argument count"},
	}
	for _, tt := range tests {
		_, err := parse(caddy.NewTestController("dns", "ocp_dnsnameresolver {\n"+tt.block+"\n}"))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error is %v, want %q in it", tt.block, err, tt.want)
		}
	}
	if _, err := parse(caddy.NewTestController("dns", "ocp_dnsnameresolver x")); err == nil {
		t.Error("an argument of the directive is taken")
	}
	if _, err := parse(caddy.NewTestController("dns", "ocp_dnsnameresolver\nocp_dnsnameresolver")); err == nil ||
		!strings.Contains(err.Error(), "once per Server Block") {
		t.Errorf("twice in a block: %v", err)
	}
}

// FuzzParse checks that any text gives options or an error.
func FuzzParse(f *testing.F) {
	f.Add("hold status 1s\nagents a:1\ntls a b c")
	f.Add("refuse 1/2 {")
	f.Fuzz(func(t *testing.T, block string) {
		_, _ = parse(caddy.NewTestController("dns", "ocp_dnsnameresolver {\n"+block+"\n}"))
	})
}
