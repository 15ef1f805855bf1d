package designate

import "github.com/nameplane/nameplane/internal/httpapi"

const (
	eachWeight  = httpapi.EachWeight
	replyMemory = httpapi.ReplyMemory

	// streamMemory is the memory of a reply that is written while it is read: buffers, and the largest record set.
	streamMemory = 1 << 20
)

func setMemory(sets, bytes int) int64 { return httpapi.SetMemory(sets, bytes) }

// need is httpapi.Need: view and commit end the transaction, reserve the bytes, and run the function again.
func (c *call) need(n int64) error { return httpapi.Need(c.r.Context(), n) }

func (c *call) withMemory(run func() error) error { return httpapi.WithMemory(c.r.Context(), run) }
