package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// Progress shows the progress of long work: a bar on a terminal, and a line every few seconds elsewhere.
type Progress struct {
	w        io.Writer
	terminal bool
	quiet    bool

	// mu guards the fields below: net/http reads a body in its own goroutine, even after an early reply.
	mu          sync.Mutex
	phase       string
	start       time.Time
	done, total int64 // bytes; total is 0 when it is not known
	next        time.Time
	shown       bool // the terminal shows a bar
}

// These are the intervals between two updates: a bar moves smoothly, and lines do not fill a log.
const (
	barInterval  = 100 * time.Millisecond
	lineInterval = 3 * time.Second
)

// NewProgress returns a Progress that prints to w, unless quiet is set.
func NewProgress(w io.Writer, quiet bool) *Progress {
	return &Progress{w: w, terminal: IsTerminal(w), quiet: quiet}
}

// Begin starts a phase of total bytes. Work that ends before the first interval shows nothing.
func (p *Progress) Begin(phase string, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clearLocked()
	p.phase, p.total, p.done, p.start = phase, total, 0, time.Now()
	p.next = p.start.Add(p.interval())
}

func (p *Progress) interval() time.Duration {
	if p.terminal {
		return barInterval
	}
	return lineInterval
}

// Add counts n more bytes.
func (p *Progress) Add(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += int64(n)
	if p.quiet || time.Now().Before(p.next) {
		return
	}
	p.next = time.Now().Add(p.interval())
	if p.terminal {
		p.shown = true
		fmt.Fprintf(p.w, "\r%-10s %s\x1b[K", p.phase, p.bar())
		return
	}
	fmt.Fprintf(p.w, "%s: %s\n", p.phase, p.amount())
}

// During runs fn. It updates the display until fn returns, even if fn does not call Add.
func (p *Progress) During(fn func() error) error {
	done := make(chan error, 1)
	go func() { done <- fn() }()
	tick := time.NewTicker(barInterval)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-tick.C:
			p.Add(0)
		}
	}
}

// End removes the bar.
func (p *Progress) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clearLocked()
}

func (p *Progress) clearLocked() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.shown = false
	}
}

func (p *Progress) amount() string {
	switch {
	case p.total > 0:
		return fmt.Sprintf("%d %% of %s", p.percent(), Megabytes(p.total))
	case p.done > 0:
		return Megabytes(p.done)
	}
	return fmt.Sprintf("%.0f s", time.Since(p.start).Seconds())
}

func (p *Progress) percent() int64 { return min(100, p.done*100/p.total) }

func (p *Progress) bar() string {
	if p.total <= 0 {
		return p.amount()
	}
	const width = 40
	full := int(p.percent()) * width / 100
	return "[" + strings.Repeat("#", full) + strings.Repeat(" ", width-full) + "] " + p.amount()
}

// Megabytes formats a number of bytes in megabytes.
func Megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

// Reader returns a reader that counts the bytes read from r, and fails when ctx ends.
func (p *Progress) Reader(ctx context.Context, r io.Reader) io.Reader {
	return &countedReader{ctx, r, p}
}

type countedReader struct {
	ctx context.Context
	r   io.Reader
	p   *Progress
}

func (c *countedReader) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.r.Read(b)
	c.p.Add(n)
	return n, err
}

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
