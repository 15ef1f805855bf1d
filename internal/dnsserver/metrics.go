package dnsserver

import (
	"sync/atomic"
	"time"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/nameplane/nameplane/internal/lookup"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/wire"
)

// Reasons why a message got no reply.
const (
	dropShort    = iota // shorter than a header
	dropResponse        // a response
	dropPort            // from a port that no client uses
	dropSend            // the reply could not be sent
	dropProxy           // without a PROXY header, or not from a proxy, on a listener for proxies
	dropTLS             // the TLS handshake failed
	numDrops
)

var dropNames = [numDrops]string{"short", "response", "source_port", "send", "proxy_header", "tls_handshake"}

// Results of queries for names outside our zones.
const (
	forwardAsked     = iota // the forwarder was asked
	forwardCached           // the forwarder answered from its cache
	forwardDenied           // the client may not use the forwarder
	forwardOverBound        // too many queries waited for it
	numForwards
)

var forwardNames = [numForwards]string{"asked", "cached", "client_refused", "over_bound"}

// countedTypes have their own label. A label for each of 65,536 types would let clients fill the metrics store.
var countedTypes = [...]rr.Type{
	rr.TypeA, rr.TypeNS, rr.TypeCNAME, rr.TypeSOA, rr.TypePTR, rr.TypeMX, rr.TypeTXT, rr.TypeAAAA, rr.TypeSRV,
	rr.Type(dns.TypeNAPTR), rr.TypeDNAME, rr.TypeDS, rr.TypeRRSIG, rr.TypeNSEC, rr.Type(dns.TypeDNSKEY),
	rr.Type(dns.TypeTLSA), rr.Type(dns.TypeSVCB), rr.Type(dns.TypeHTTPS), rr.TypeIXFR, rr.TypeAXFR, rr.TypeANY,
	rr.Type(dns.TypeCAA),
}

// typeSlots maps each type below 512 to its counter. Slot 0 counts all others.
var typeSlots = func() (slots [512]uint8) {
	for i, t := range countedTypes {
		slots[t] = uint8(i + 1)
	}
	return slots
}()

// latencyBounds are bucket limits: a batch of one is answered in about 5 µs, a full batch in 100 µs.
var latencyBounds = [...]time.Duration{
	5 * time.Microsecond, 10 * time.Microsecond, 25 * time.Microsecond, 50 * time.Microsecond, 100 * time.Microsecond,
	250 * time.Microsecond, 500 * time.Microsecond, time.Millisecond, 5 * time.Millisecond, 25 * time.Millisecond,
	100 * time.Millisecond, time.Second,
}

// counters are written by the goroutine of one socket and by its queries that have waited, and read by the collector.
// Atomics without contention cost a few nanoseconds each; a usual query needs two.
type counters struct {
	transport string
	family    string

	types     [1 + len(countedTypes)]atomic.Uint64
	responses [numRcodes][numKinds]atomic.Uint64
	limited   [numLimited]atomic.Uint64
	dropped   [numDrops]atomic.Uint64
	forwards  [numForwards]atomic.Uint64
	truncated atomic.Uint64
	latency   [len(latencyBounds) + 1]atomic.Uint64
	elapsed   atomic.Int64

	_ [64]byte // puts the counters of the next socket on another cache line
}

func (c *counters) drop(reason int) { c.dropped[reason].Add(1) }

func (c *counters) query(q *query) {
	slot := uint8(0)
	if q.hasQuestion && int(q.qtype) < len(typeSlots) {
		slot = typeSlots[q.qtype]
	}
	c.types[slot].Add(1)
}

func (c *counters) response(rcode uint8, k lookup.Kind) { c.responses[rcode][k].Add(1) }

// observe counts n answers with the duration of their batch. The last of them took that long, the others at most that
// long.
func (c *counters) observe(d time.Duration, n int) {
	i := 0
	for i < len(latencyBounds) && d > latencyBounds[i] {
		i++
	}
	c.latency[i].Add(uint64(n))
	c.elapsed.Add(int64(d) * int64(n))
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("nameplane_dns_"+name, help, labels, nil)
}

// collector reads the counters of all sockets.
type collector struct {
	server                                               *Server
	queries, types, responses, kinds, refused, truncated *prometheus.Desc
	limited, dropped, duration, conns, forwards, waiting *prometheus.Desc
}

// Collector returns the server's metrics.
func (s *Server) Collector() prometheus.Collector {
	return &collector{
		server:    s,
		queries:   desc("queries_total", "Queries read.", "transport", "family"),
		types:     desc("queries_by_type_total", "Queries by the type asked for.", "type"),
		responses: desc("responses_total", "Replies by their RCODE.", "transport", "rcode"),
		kinds:     desc("response_kinds_total", "Replies from zones by what they say.", "kind"),
		refused:   desc("refused_total", "Replies with RCODE REFUSED."),
		truncated: desc("truncated_total", "Replies with the TC bit set.", "transport"),
		limited:   desc("rate_limited_total", "Answers dropped or truncated by the rate limit.", "action"),
		dropped:   desc("dropped_total", "Messages that got no reply.", "reason"),
		duration: desc("request_duration_seconds", "Time from receiving a message to sending its reply.",
			"transport"),
		conns:    desc("tcp_connections", "Open connections over TCP, with those of DNS over TLS."),
		forwards: desc("forward_queries_total", "Queries for names outside our zones, by result.", "result"),
		waiting:  desc("forward_waiting", "Queries that wait for the forwarder."),
	}
}

func (c *collector) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, ch) }

func (c *collector) Collect(ch chan<- prometheus.Metric) {
	t := c.server.total()
	count := func(d *prometheus.Desc, n uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	for k, n := range t.queries {
		count(c.queries, n, k.transport, k.value)
	}
	for k, n := range t.responses {
		count(c.responses, n, k.transport, k.value)
	}
	for slot, n := range t.types {
		name := "other"
		if slot > 0 {
			name = countedTypes[slot-1].String()
		}
		count(c.types, n, name)
	}
	for k, n := range t.kinds {
		count(c.kinds, n, lookup.Kind(k).String())
	}
	count(c.refused, t.refused)
	count(c.limited, t.limited[limitDrop], "drop")
	count(c.limited, t.limited[limitSlip], "slip")
	for i, n := range t.dropped {
		count(c.dropped, n, dropNames[i])
	}
	if w := c.server.settings.pending; w != nil {
		for i, n := range t.forwards {
			count(c.forwards, n, forwardNames[i])
		}
		ch <- prometheus.MustNewConstMetric(c.waiting, prometheus.GaugeValue, float64(w.len()))
	}
	for transport, l := range t.latency {
		count(c.truncated, l.truncated, transport)
		ch <- prometheus.MustNewConstHistogram(c.duration, l.count, l.sum.Seconds(), l.buckets, transport)
	}
	ch <- prometheus.MustNewConstMetric(c.conns, prometheus.GaugeValue, float64(c.server.conns.len()))
}

// totals is the sum over all sockets.
type totals struct {
	queries   map[label]uint64 // by family
	responses map[label]uint64 // by RCODE
	latency   map[string]*latency
	types     [1 + len(countedTypes)]uint64
	kinds     [lookup.NumKinds]uint64
	limited   [numLimited]uint64
	dropped   [numDrops]uint64
	forwards  [numForwards]uint64
	refused   uint64
}

type label struct{ transport, value string }

type latency struct {
	buckets   map[float64]uint64
	count     uint64
	sum       time.Duration
	truncated uint64
}

func (s *Server) total() *totals {
	t := &totals{queries: map[label]uint64{}, responses: map[label]uint64{}, latency: map[string]*latency{}}
	for _, c := range s.counters {
		t.add(c)
	}
	return t
}

func (t *totals) add(c *counters) {
	for i := range t.types {
		n := c.types[i].Load()
		t.types[i] += n
		t.queries[label{c.transport, c.family}] += n
	}
	for rcode := range c.responses {
		for kind := range c.responses[rcode] {
			t.addResponses(c, rcode, kind)
		}
	}
	addAll(t.limited[:], c.limited[:])
	addAll(t.dropped[:], c.dropped[:])
	addAll(t.forwards[:], c.forwards[:])
	t.addLatency(c)
}

func addAll(sums []uint64, counts []atomic.Uint64) {
	for i := range sums {
		sums[i] += counts[i].Load()
	}
}

func (t *totals) addResponses(c *counters, rcode, kind int) {
	n := c.responses[rcode][kind].Load()
	if n == 0 {
		return
	}
	t.responses[label{c.transport, wire.RcodeText(rcode)}] += n
	if kind < lookup.NumKinds {
		t.kinds[kind] += n
	}
	if rcode == wire.RcodeRefused {
		t.refused += n
	}
}

func (t *totals) addLatency(c *counters) {
	l := t.latency[c.transport]
	if l == nil {
		l = &latency{buckets: map[float64]uint64{}}
		t.latency[c.transport] = l
	}
	below := uint64(0)
	for i, bound := range latencyBounds {
		below += c.latency[i].Load()
		l.buckets[bound.Seconds()] += below
	}
	l.count += below + c.latency[len(latencyBounds)].Load()
	l.sum += time.Duration(c.elapsed.Load())
	l.truncated += c.truncated.Load()
}
