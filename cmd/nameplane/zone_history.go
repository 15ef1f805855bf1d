package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
)

// historyChange holds the fields of a history entry that the command line uses.
type historyChange struct {
	ID         string       `json:"id"`
	CreatedAt  string       `json:"created_at"`
	Who        string       `json:"who"`
	Note       string       `json:"note"`
	From       uint32       `json:"serial_from"`
	To         uint32       `json:"serial_to"`
	Complete   bool         `json:"complete"`
	Damaged    bool         `json:"damaged"`
	ZoneTTL    *historyTTL  `json:"zone_ttl"`
	RecordSets []historySet `json:"recordsets"`
}

// historyTTL is the TTL of the zone before and after a change. Records without their own TTL use it.
type historyTTL struct {
	Before uint32 `json:"before"`
	After  uint32 `json:"after"`
}

// diff writes the old and the new $TTL directive if the TTL has changed.
func (t historyTTL) diff(b *strings.Builder) {
	if t.Before != t.After {
		fmt.Fprintf(b, "- $TTL %d\n+ $TTL %d\n", t.Before, t.After)
	}
}

// historySet is the change of one record set. Before is nil for a new set, and After for a deleted one.
type historySet struct {
	Name   string         `json:"name"`
	Type   string         `json:"type"`
	Before *historyValues `json:"before"`
	After  *historyValues `json:"after"`
}

// historyValues are the records of a set. TTL is nil when the set uses the TTL of the zone.
type historyValues struct {
	TTL     *uint32  `json:"ttl"`
	Records []string `json:"records"`
}

// newZoneHistory shows the newest 20 changes by default: a busy zone has thousands, and the last ones are wanted most.
func newZoneHistory(conn *connection) *cobra.Command {
	var out cli.Format
	var limit int
	c := &cobra.Command{
		Use:   "history NAME",
		Short: "Show who changed what in a zone",
		Long: `Show the changes of a zone, newest first. For each change the command prints the serial
after it, its time, its author, the removed (-) and added (+) records, and the TTL of the
zone if it changed. The records of very large changes, such as imports, are not stored.

"nameplane zone rollback" restores the zone at one of the serials.`,
		Example: `  nameplane zone history example.org
  nameplane zone history example.org --limit 1
  nameplane zone history example.org -o json | jq -r '.[].who'`,
		Args: cli.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 {
				return cli.Usage(cmd, "--limit %d: must be more than 0", limit)
			}
			cl, z, err := conn.openZone(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			h := &historyPrinter{w: cmd.OutOrStdout(), zoneTTL: z.TTL, remaining: limit}
			if out.JSON() {
				h.json = cli.NewJSONList(h.w)
			}
			// Ask for no more than is printed: entries of large changes are large.
			q := url.Values{"limit": {strconv.Itoa(min(limit, 1000))}}
			err = cl.pages(cmd.Context(), "/v2/zones/"+z.ID+"/history?"+q.Encode(), "history", h.page)
			return h.end(err)
		},
	}
	out.AddFlag(c)
	c.Flags().IntVar(&limit, "limit", 20, "show at most `N` changes")
	return c
}

// errEnough stops the iteration over pages when enough changes are printed.
var errEnough = errors.New("enough")

// historyPrinter prints changes, newest first, as text or JSON.
type historyPrinter struct {
	w       io.Writer
	json    *cli.JSONList
	zoneTTL uint32 // TTL of the zone after the next change to print

	remaining int  // number of changes still to print
	printed   bool // at least one change was printed
}

// page stops the iteration as soon as enough changes are printed: the next page would be read in vain.
func (h *historyPrinter) page(items []json.RawMessage) error {
	for _, item := range items {
		if h.remaining == 0 {
			return errEnough
		}
		h.remaining--
		if err := h.change(item); err != nil {
			return err
		}
	}
	return nil
}

// end closes the JSON array also after errEnough, which is no error for the user.
func (h *historyPrinter) end(err error) error {
	if errors.Is(err, errEnough) {
		err = nil
	}
	if err == nil && h.json != nil {
		err = h.json.End()
	}
	return err
}

// change prints each change as it arrives: the history of a busy zone need not fit into memory.
func (h *historyPrinter) change(item json.RawMessage) error {
	if h.json != nil {
		return h.json.Add(item)
	}
	var ch historyChange
	if err := json.Unmarshal(item, &ch); err != nil {
		return err
	}
	var b strings.Builder
	if h.printed {
		b.WriteByte('\n')
	}
	h.printed = true
	h.describe(&b, ch)
	_, err := io.WriteString(h.w, b.String())
	return err
}

// describe computes the TTL of the zone backwards, because the history begins with the newest change.
func (h *historyPrinter) describe(b *strings.Builder, ch historyChange) {
	if ch.To == 0 { // damaged: not even the serial can be read
		fmt.Fprintf(b, "change %s\n", cli.Printable(ch.ID))
	} else {
		fmt.Fprintf(b, "serial %d  %s  %s  %s\n",
			ch.To, humanTime(ch.CreatedAt), cli.Printable(ch.Who), cli.Printable(ch.Note))
	}
	switch {
	case ch.Damaged:
		b.WriteString("  (damaged: its records cannot be read, and no rollback can go further back)\n")
	case !ch.Complete:
		b.WriteString("  (the change is too large: its records are not stored)\n")
	}
	ttl := historyTTL{h.zoneTTL, h.zoneTTL}
	if ch.ZoneTTL != nil {
		ttl = *ch.ZoneTTL
	}
	ttl.diff(b)
	for _, s := range ch.RecordSets {
		s.diff(b, ttl)
	}
	h.zoneTTL = ttl.Before // for the next change, which is older
}

// humanTime formats a time of the API, which is in UTC, without fractions of a second.
func humanTime(s string) string {
	s, _, _ = strings.Cut(s, ".")
	return strings.Replace(s, "T", " ", 1) + " UTC"
}

// diff writes a line for each removed or added record. It writes nothing for a SOA record that differs only in its
// serial or the TTL of the zone: every change increases the serial, and historyTTL.diff writes the TTL.
func (s historySet) diff(b *strings.Builder, zone historyTTL) {
	before, after := s.lines(s.Before, zone.Before), s.lines(s.After, zone.After)
	// Compare with the new TTL on both sides, because a SOA record without its own TTL changes with the zone.
	if s.Type == "SOA" && len(before) == 1 && len(after) == 1 &&
		withoutSerial(s.lines(s.Before, zone.After)[0]) == withoutSerial(after[0]) {
		return
	}
	for _, line := range before {
		if !slices.Contains(after, line) {
			fmt.Fprintf(b, "- %s\n", cli.Printable(line))
		}
	}
	for _, line := range after {
		if !slices.Contains(before, line) {
			fmt.Fprintf(b, "+ %s\n", cli.Printable(line))
		}
	}
}

// withoutSerial removes the serial from a SOA record line: owner, TTL, type, mname, rname, serial.
func withoutSerial(line string) string {
	f := strings.Fields(line)
	if len(f) > 5 {
		f[5] = ""
	}
	return strings.Join(f, " ")
}

// lines returns one line for each record of v. ttl is the TTL of the zone, for a set without its own TTL.
func (s historySet) lines(v *historyValues, ttl uint32) []string {
	if v == nil {
		return nil
	}
	if v.TTL != nil {
		ttl = *v.TTL
	}
	var out []string
	for _, r := range v.Records {
		out = append(out, fmt.Sprintf("%s %d %s %s", s.Name, ttl, s.Type, r))
	}
	return out
}
