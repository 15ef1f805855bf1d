package dnsserver

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/wire"
)

const (
	dohPath = "/dns-query"
	dohType = "application/dns-message"
)

// httpsHandler serves DNS over HTTPS (RFC 8484).
type httpsHandler struct {
	server *Server
	count  [2]*counters // for clients with IPv4 and with IPv6
}

// HTTPS returns the handler of DNS over HTTPS. Call it before Run. Requests that arrive after Run has ended get 503.
func (s *Server) HTTPS() http.Handler {
	return &httpsHandler{s, [2]*counters{s.newCounters("https", "ipv4"), s.newCounters("https", "ipv6")}}
}

func (d *httpsHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	deadlines := http.NewResponseController(w) // httptest.ResponseRecorder does not support them; ignore the errors
	writable := func() { _ = deadlines.SetWriteDeadline(time.Now().Add(d.server.timeouts.write)) }
	refuse := func(text string, status int) {
		writable()
		http.Error(w, text, status)
	}
	if r.URL.Path != dohPath {
		refuse("404 page not found", http.StatusNotFound)
		return
	}
	from, count, err := d.clientOf(r)
	if err != nil {
		refuse(err.Error(), http.StatusBadRequest)
		return
	}
	held := &share{from: d.server.streams, addr: from.addr}
	defer held.release()
	_ = deadlines.SetReadDeadline(time.Now().Add(d.server.timeouts.read))
	message, status := readRequest(w, r, held)
	if status != http.StatusOK {
		refuse(http.StatusText(status), status)
		return
	}
	write := func(reply []byte) error {
		writable()
		return writeReply(w, reply)
	}
	failed := false
	switch err := d.server.exchange(message, from, count, held, write, func() { failed = true }); {
	case errors.Is(err, errEnded) || errors.Is(err, errLoad):
		refuse(err.Error(), http.StatusServiceUnavailable)
	case err != nil:
		refuse(err.Error(), http.StatusBadRequest)
	case failed:
		panic(http.ErrAbortHandler)
	}
}

// headerSize returns the number of bytes in the header of a request, which stay in memory until it is answered.
func headerSize(r *http.Request) int {
	n := len(r.RequestURI)
	for name, values := range r.Header {
		n += len(name)
		for _, v := range values {
			n += len(v)
		}
	}
	return n
}

// readRequest returns the message of a request, or an HTTP status other than 200.
func readRequest(w http.ResponseWriter, r *http.Request, held *share) ([]byte, int) {
	if held.holds(headerSize(r)) != nil {
		return nil, http.StatusServiceUnavailable
	}
	var message []byte
	var err error
	switch r.Method {
	case http.MethodGet:
		message, err = base64.RawURLEncoding.DecodeString(r.URL.Query().Get("dns"))
	case http.MethodPost:
		if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != dohType {
			return nil, http.StatusUnsupportedMediaType
		}
		message, err = held.read(http.MaxBytesReader(w, r.Body, wire.MaxSize))
	default:
		w.Header().Set("Allow", "GET, POST")
		return nil, http.StatusMethodNotAllowed
	}
	switch {
	case errors.Is(err, errLoad):
		return nil, http.StatusServiceUnavailable
	case errors.As(err, new(*http.MaxBytesError)) || len(message) > wire.MaxSize:
		return nil, http.StatusRequestEntityTooLarge
	case err != nil || len(message) < wire.HeaderSize:
		return nil, http.StatusBadRequest
	}
	return message, http.StatusOK
}

// clientOf returns the client of a request. Of a request by a proxy, it is the last address that X-Forwarded-For has:
// clients can write the others.
func (d *httpsHandler) clientOf(r *http.Request) (client, *counters, error) {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	addr := peer.Addr().Unmap().WithZone("")
	if lines := r.Header.Values("X-Forwarded-For"); err == nil && len(lines) > 0 && contains(d.server.cfg.Proxies, addr) {
		list := strings.Split(lines[len(lines)-1], ",")
		if addr, err = netip.ParseAddr(strings.TrimSpace(list[len(list)-1])); err == nil {
			addr = addr.Unmap().WithZone("")
		}
	}
	if err != nil {
		return client{}, nil, fmt.Errorf("the address of the client cannot be read: %w", err)
	}
	c := client{addr: addr, tcp: true, single: true, encrypted: &Encryption{}}
	if r.TLS != nil {
		c.encrypted = encryptionOf(*r.TLS)
	}
	if addr.Is6() {
		return c, d.count[1], nil
	}
	return c, d.count[0], nil
}

func writeReply(w http.ResponseWriter, reply []byte) error {
	h := w.Header()
	h.Set("Content-Type", dohType)
	h.Set("Cache-Control", fmt.Sprintf("max-age=%d", maxAge(reply)))
	h.Set("X-Content-Type-Options", "nosniff")
	_, err := w.Write(reply)
	return err
}

// maxAge returns how long a reply may be cached, in seconds: the smallest TTL of its answers, and for a negative reply
// the time of RFC 2308 §5 (RFC 8484 §5.1). Errors are not cached.
func maxAge(reply []byte) uint32 {
	if rcode := reply[3] & 0xF; rcode != wire.RcodeNoError && rcode != wire.RcodeNXDomain {
		return 0
	}
	at, ok := wire.SkipName(reply, wire.HeaderSize)
	if binary.BigEndian.Uint16(reply[4:]) == 0 || !ok {
		return 0
	}
	at += 4
	answers := int(binary.BigEndian.Uint16(reply[6:]))
	age, found := uint32(1<<31-1), false
	for i := range answers + int(binary.BigEndian.Uint16(reply[8:])) {
		r, ok := wire.ReadRecord(reply, at)
		if !ok {
			return 0
		}
		at = r.Next
		if i >= answers && r.Type != rr.TypeSOA {
			continue
		}
		found = true
		age = min(age, binary.BigEndian.Uint32(reply[r.Fixed+4:]))
		if i >= answers {
			age = min(age, binary.BigEndian.Uint32(reply[r.Next-4:])) // MINIMUM is the last field
		}
	}
	if !found {
		return 0
	}
	return age
}
