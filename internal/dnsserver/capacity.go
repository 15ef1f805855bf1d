package dnsserver

import (
	"errors"
	"io"
	"net/netip"
	"sync"

	"github.com/nameplane/nameplane/internal/wire"
)

// capacity limits the queries that clients have at the same time, and with them the memory.
type capacity struct {
	maxQueries int // maximum number of queries
	perClient  int // maximum for one IPv4 address or IPv6 /64

	mu      sync.Mutex // guards all fields below
	queries int
	clients map[netip.Addr]int
}

func newCapacity(maxQueries int) *capacity {
	return &capacity{maxQueries: maxQueries, perClient: maxQueries / 4, clients: map[netip.Addr]int{}}
}

// queryUnit is larger than any ordinary query.
const queryUnit = 2048

// weight returns how many queries a message counts as: one for each queryUnit that it begins. With it, the limit on
// the number of queries also limits the memory that they hold.
func weight(in []byte) int { return units(len(in)) }

func units(size int) int { return 1 + size/queryUnit }

// tryReserve reserves n units for a query. It returns false when the client, or all clients together, have too many
// queries.
func (c *capacity) tryReserve(addr netip.Addr, n int) bool {
	client := clientOf(addr)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.queries+n > c.maxQueries || c.clients[client]+n > c.perClient {
		return false
	}
	c.queries += n
	c.clients[client] += n
	return true
}

// free returns units that tryReserve took.
func (c *capacity) free(addr netip.Addr, n int) {
	client := clientOf(addr)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queries -= n
	if c.clients[client] -= n; c.clients[client] == 0 {
		delete(c.clients, client)
	}
}

func (c *capacity) len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.queries
}

// maxRequests limits the requests over HTTPS and QUIC that run at the same time, in units of capacity. A client may
// have many connections, each with many streams, and every stream may hold a message or a reply of 64 KiB.
const maxRequests = 16 << 10

var errLoad = errors.New("too many requests are running")

// share is the part of a capacity that a request has.
type share struct {
	from  *capacity
	addr  netip.Addr
	units int
}

// holds reserves what the request of a client needs for size bytes, if that is more than it has.
func (h *share) holds(size int) error {
	more := units(size) - h.units
	if more <= 0 {
		return nil
	}
	if !h.from.tryReserve(h.addr, more) {
		return errLoad
	}
	h.units += more
	return nil
}

// release returns what the request has reserved.
func (h *share) release() {
	if h.units > 0 {
		h.from.free(h.addr, h.units)
	}
}

// firstRequest is the first read buffer of a request. It grows only as bytes arrive.
const firstRequest = 512

// read reads a request to its end, but at most one byte more than the largest.
func (h *share) read(r io.Reader) ([]byte, error) {
	const most = lengthSize + wire.MaxSize + 1
	in := make([]byte, 0, firstRequest)
	for len(in) < most {
		if len(in) == cap(in) {
			size := min(2*cap(in), most)
			if err := h.holds(size); err != nil {
				return nil, err
			}
			in = append(make([]byte, 0, size), in...)
		}
		n, err := r.Read(in[len(in):cap(in)])
		in = in[:len(in)+n]
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	return in, nil
}
