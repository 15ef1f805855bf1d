package designate

import (
	"errors"

	"github.com/nameplane/nameplane/internal/httpapi"
)

// A record set or a change weighs eachWeight for its name, times and links, plus the bytes of its records. A reply
// takes up to replyMemory bytes for each byte of weight, from the store to its JSON: JSON has five bytes for a byte of
// a TXT record that is written as a decimal escape, and the encoder has two copies.
const (
	eachWeight  = 128
	replyMemory = 20

	// streamMemory is the memory of a reply that is written while it is read: buffers, and the largest record set.
	streamMemory = 1 << 20
)

// setMemory returns the memory of a reply with a number of record sets and the bytes of their records.
func setMemory(sets, bytes int) int64 { return int64(sets*eachWeight+bytes) * replyMemory }

// moreMemory is the error of call.need.
type moreMemory struct{ n int64 }

func (e *moreMemory) Error() string { return "the request needs more memory" }

// need returns nil when the request holds n bytes of the memory budget for its reply. Functions that read the data of a
// reply call it with the bytes that they use so far. When it returns an error, they must return that error: view and
// commit then end the transaction, reserve the bytes, and run the function again. So a request that waits for memory
// holds no data and no transaction.
func (c *call) need(n int64) error {
	if httpapi.Holds(c.r.Context(), n) {
		return nil
	}
	return &moreMemory{n}
}

// withMemory calls run until it does not need more memory.
func (c *call) withMemory(run func() error) error {
	for {
		err := run()
		var more *moreMemory
		if !errors.As(err, &more) {
			return err
		}
		if err := httpapi.Reserve(c.r.Context(), more.n); err != nil {
			return err
		}
	}
}
