package powerdns_test

import "testing"

// TestDatumAgent sends the calls of the agent of Datum's dns-operator, which manages zones of PowerDNS. It creates
// zones that may exist, writes one record set in each request, and deletes zones and sets that may not exist. It
// recognizes a conflict by the words of the error.
func TestDatumAgent(t *testing.T) {
	s := newServer(t)
	const create = `{"name":"example.org.","kind":"Native","nameservers":["ns1.example.net.","ns2.example.net."]}`
	const zone = "/zones/example.org."
	for _, tt := range []struct {
		call, body string
		status     int
		message    string
	}{
		{"GET " + zone, "", 404, "Not Found"},
		{"POST /zones", create, 201, ""},
		{"POST /zones", create, 409, "Conflict"},
		{"GET " + zone, "", 200, ""},
		{"PATCH " + zone, replace("www.example.org.", "A", "192.0.2.1", "192.0.2.2"), 204, ""},
		{"PATCH " + zone, replace("www.example.org.", "HTTPS", "1 . alpn=h2,h3 ipv4hint=192.0.2.1"), 204, ""},
		{"PATCH " + zone, replace("www.example.org.", "HTTPS", "0 lb.example.net."), 204, ""},
		{"PATCH " + zone, replace("_dns.example.org.", "SVCB", "1 ns1.example.net. alpn=dot port=853"), 204, ""},
		{"PATCH " + zone, replace("_443._tcp.www.example.org.", "TLSA",
			"3 1 1 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"), 204, ""},
		{"PATCH " + zone, replace("example.org.", "ALIAS", "lb.example.net."), 204, ""},
		{"PATCH " + zone, replace("example.org.", "CAA", `0 issue "ca.example.net"`), 204, ""},
		{"PATCH " + zone, replace("example.org.", "SOA", "ns1.example.net. hostmaster.example.org. 2026010101 1 2 3 4"), 204,
			""},
		{"PATCH " + zone, replace("www.example.org.", "CNAME", "lb.example.net."), 422,
			"RRset www.example.org. IN CNAME: Conflicts with pre-existing RRset"},
		{"PATCH " + zone, replace("www.example.net.", "A", "192.0.2.1"), 422,
			"RRset www.example.net. IN A: Name is out of zone"},
		{"PATCH " + zone, patch("DELETE", "www.example.org.", "HTTPS"), 204, ""},
		{"PATCH " + zone, patch("DELETE", "www.example.org.", "HTTPS"), 204, ""},
		{"PATCH " + zone, patch("DELETE", "www.example.org.", "A"), 204, ""},
		{"PATCH " + zone, replace("www.example.org.", "CNAME", "lb.example.net."), 204, ""}, // after the conflict is gone
		{"DELETE " + zone, "", 204, ""},
		{"DELETE " + zone, "", 404, "Not Found"},
		{"PATCH " + zone, replace("www.example.org.", "A", "192.0.2.1"), 404, "Not Found"},
	} {
		res := s.do(alice, tt.call, tt.body)
		if res.Code != tt.status || res.message() != tt.message {
			t.Errorf("%s %s = %d %s, want %d %q", tt.call, tt.body, res.Code, res.Body, tt.status, tt.message)
		}
	}
}
