package dnsserver

import (
	"encoding/binary"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
)

// tsig is what an answer to a signed query needs of its signature. No keys are configured yet, so every key is
// unknown; transfers and updates will bring them.
type tsig struct {
	present   bool
	owner     int // where in the query the key's name stands
	algorithm int // and the algorithm's
}

// Sizes of the fields of a TSIG's data around its algorithm name and MAC (RFC 8945 §4.2).
const (
	tsigBeforeMAC = 6 + 2 + 2 // time signed, fudge, MAC size
	tsigAfterMAC  = 2 + 2 + 2 // original id, error, other length
	tsigFudge     = 300
	tsigBadKey    = 17
)

// read checks that the data of a TSIG record, which stands at [data, end), is whole.
func (t *tsig) read(wire []byte, owner, data, end int) bool {
	alg, ok := skipName(wire[:end], data)
	if !ok || end < alg+tsigBeforeMAC {
		return false
	}
	at := alg + tsigBeforeMAC + int(binary.BigEndian.Uint16(wire[alg+8:]))
	if end < at+tsigAfterMAC || end != at+tsigAfterMAC+int(binary.BigEndian.Uint16(wire[at+4:])) {
		return false
	}
	*t = tsig{present: true, owner: owner, algorithm: data}
	return true
}

// appendBadKey appends the unsigned TSIG that says that the key is not known (RFC 8945 §5.2.1, §5.3.2). It appends
// nothing when a name of the query's is broken or there is no room for it; the RCODE tells the same.
func (t *tsig) appendBadKey(msg []byte, q *query, now int64, limit int) ([]byte, bool) {
	const fixed = 10 + tsigBeforeMAC + tsigAfterMAC
	if len(msg)+2*dnsname.MaxWire+fixed > cap(msg) {
		return msg, false
	}
	out, ok := appendName(msg, q.wire, t.owner)
	if !ok {
		return msg, false
	}
	out = binary.BigEndian.AppendUint16(out, uint16(rr.TypeTSIG))
	out = binary.BigEndian.AppendUint16(out, classANY)
	out = append(out, 0, 0, 0, 0, 0, 0) // TTL, and room for the length
	data := len(out)
	if out, ok = appendName(out, q.wire, t.algorithm); !ok {
		return msg, false
	}
	out = binary.BigEndian.AppendUint16(out, uint16(now>>32))
	out = binary.BigEndian.AppendUint32(out, uint32(now))
	out = binary.BigEndian.AppendUint16(out, tsigFudge)
	out = append(out, 0, 0) // no MAC
	out = append(out, q.wire[0], q.wire[1])
	out = binary.BigEndian.AppendUint16(out, tsigBadKey)
	out = append(out, 0, 0) // no other data
	binary.BigEndian.PutUint16(out[data-2:], uint16(len(out)-data))
	return out, len(out) <= limit
}
