package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// progress shows how far long work is: a bar on a terminal, a line every few seconds elsewhere, or nothing at all.
type progress struct {
	w        io.Writer
	terminal bool
	quiet    bool
	now      func() time.Time

	mu          sync.Mutex // guards the following: a body is read by net/http's goroutine, even after an early reply
	phase       string
	start       time.Time
	done, total int64 // octets; total 0: not known
	next        time.Time
	shown       bool // a bar stands on the line
}

// Times between two signs of life: a bar that moves smoothly, and lines that do not fill a log.
const (
	barInterval  = 100 * time.Millisecond
	lineInterval = 3 * time.Second
)

func newProgress(w io.Writer, quiet bool) *progress {
	return &progress{w: w, terminal: isTerminal(w), quiet: quiet, now: time.Now}
}

// begin starts a phase of so many octets. Short work shows nothing.
func (p *progress) begin(phase string, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clearLocked()
	p.phase, p.total, p.done, p.start = phase, total, 0, p.now()
	p.next = p.start.Add(p.interval())
}

func (p *progress) interval() time.Duration {
	if p.terminal {
		return barInterval
	}
	return lineInterval
}

// add counts n octets more, and shows it when it is time to.
func (p *progress) add(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += int64(n)
	if p.quiet || p.now().Before(p.next) {
		return
	}
	p.next = p.now().Add(p.interval())
	if p.terminal {
		p.shown = true
		fmt.Fprintf(p.w, "\r%-10s %s\x1b[K", p.phase, p.bar())
		return
	}
	fmt.Fprintf(p.w, "%s: %s\n", p.phase, p.amount())
}

// during shows how far it is while fn works, whether or not anything is counted.
func (p *progress) during(fn func() error) error {
	done := make(chan error, 1)
	go func() { done <- fn() }()
	tick := time.NewTicker(barInterval)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-tick.C:
			p.add(0)
		}
	}
}

// end takes the bar away.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clearLocked()
}

func (p *progress) clearLocked() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.shown = false
	}
}

func (p *progress) amount() string {
	switch {
	case p.total > 0:
		return fmt.Sprintf("%d %% of %s", p.percent(), megabytes(p.total))
	case p.done > 0:
		return megabytes(p.done)
	}
	return fmt.Sprintf("%.0f s", p.now().Sub(p.start).Seconds())
}

func (p *progress) percent() int64 { return min(100, p.done*100/p.total) }

func (p *progress) bar() string {
	if p.total <= 0 {
		return p.amount()
	}
	const width = 40
	full := int(p.percent()) * width / 100
	return "[" + strings.Repeat("#", full) + strings.Repeat(" ", width-full) + "] " + p.amount()
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

// reader counts what is read through it, and ends when ctx does.
func (p *progress) reader(ctx context.Context, r io.Reader) io.Reader {
	return &countedReader{ctx, r, p}
}

type countedReader struct {
	ctx context.Context
	r   io.Reader
	p   *progress
}

func (c *countedReader) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.r.Read(b)
	c.p.add(n)
	return n, err
}
