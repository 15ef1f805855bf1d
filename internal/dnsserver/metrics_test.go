package dnsserver

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
)

func mustAddr(s string) netip.Addr { return netip.MustParseAddr(s) }

// gathered returns all non-zero counters and gauges, and the counts of histograms, by name and label values.
func gathered(t *testing.T, c prometheus.Collector) map[string]float64 {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	if err := r.Register(c); err != nil {
		t.Fatal(err)
	}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			key := f.GetName()
			for _, l := range m.Label {
				key += " " + l.GetValue()
			}
			v := m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			if v != 0 {
				got[key] = v
			}
		}
	}
	return got
}

func TestMetrics(t *testing.T) {
	s := listening(t, Config{Listen: []string{"127.0.0.1:0", "[::1]:0"}, workers: 2})
	stop := run(t, s)
	v4, v6 := s.Addrs()[0].String(), s.Addrs()[1].String()
	exchange(t, "udp", v4, question("www.example.org.", dns.TypeA))
	exchange(t, "udp", v4, question("x.example.org.", dns.TypeAAAA))
	exchange(t, "udp", v4, question("big.example.org.", dns.TypeA))
	exchange(t, "udp", v6, question("example.net.", 4711))
	exchange(t, "tcp", v6, question("a.sub.example.org.", dns.TypeMX))
	badVersion := withOPT(question("www.example.org.", dns.TypeA), 1232)
	badVersion.IsEdns0().SetVersion(9)
	exchange(t, "udp", v4, badVersion)
	udpClient(t, "127.0.0.1:0").WriteToUDPAddrPort([]byte("short"), s.Addrs()[0])
	stop()
	want := map[string]float64{
		"nameplane_dns_queries_total ipv4 udp":        4,
		"nameplane_dns_queries_total ipv6 udp":        1,
		"nameplane_dns_queries_total ipv6 tcp":        1,
		"nameplane_dns_queries_by_type_total A":       3,
		"nameplane_dns_queries_by_type_total AAAA":    1,
		"nameplane_dns_queries_by_type_total MX":      1,
		"nameplane_dns_queries_by_type_total other":   1,
		"nameplane_dns_responses_total NOERROR udp":   2,
		"nameplane_dns_responses_total NXDOMAIN udp":  1,
		"nameplane_dns_responses_total REFUSED udp":   1,
		"nameplane_dns_responses_total BADVERS udp":   1,
		"nameplane_dns_responses_total NOERROR tcp":   1,
		"nameplane_dns_response_kinds_total positive": 2,
		"nameplane_dns_response_kinds_total nxdomain": 1,
		"nameplane_dns_response_kinds_total refused":  1,
		"nameplane_dns_response_kinds_total referral": 1,
		"nameplane_dns_refused_total":                 1,
		"nameplane_dns_truncated_total udp":           1,
		"nameplane_dns_dropped_total short":           1,
		"nameplane_dns_request_duration_seconds udp":  5,
		"nameplane_dns_request_duration_seconds tcp":  1,
	}
	if diff := cmp.Diff(want, gathered(t, s.Collector())); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
}
