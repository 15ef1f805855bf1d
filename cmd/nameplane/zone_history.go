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

// historyChange is as much of an entry of the history as the command line speaks of.
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

// historyTTL is the zone's own TTL, which records without one have.
type historyTTL struct {
	Before uint32 `json:"before"`
	After  uint32 `json:"after"`
}

// diff writes the directive of a zone file that went, and that came.
func (t historyTTL) diff(b *strings.Builder) {
	if t.Before != t.After {
		fmt.Fprintf(b, "- $TTL %d\n+ $TTL %d\n", t.Before, t.After)
	}
}

type historySet struct {
	Name   string         `json:"name"`
	Type   string         `json:"type"`
	Before *historyValues `json:"before"`
	After  *historyValues `json:"after"`
}

type historyValues struct {
	TTL     *uint32  `json:"ttl"`
	Records []string `json:"records"`
}

func newZoneHistory(conn *connection) *cobra.Command {
	var out cli.Format
	var limit int
	c := &cobra.Command{
		Use:   "history NAME",
		Short: "Show who changed what in a zone",
		Long: `Show the changes of a zone, newest first: the serial after each of them, when and by whom
it was made, and the records that went (-) and came (+), or the zone's own TTL. Of very
large changes, such as imports, only the fact is kept.

"nameplane zone rollback" goes back to one of the serials.`,
		Example: `  nameplane zone history example.org
  nameplane zone history example.org --limit 1
  nameplane zone history example.org -o json | jq -r '.[].who'`,
		Args: cli.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 {
				return cli.Usage(cmd, "--limit %d: it must be above 0", limit)
			}
			cl, z, err := conn.openZone(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			h := &historyPrinter{w: cmd.OutOrStdout(), zoneTTL: z.TTL, left: limit}
			if out.JSON() {
				h.json = cli.NewJSONList(h.w)
			}
			q := url.Values{"limit": {strconv.Itoa(min(limit, 1000))}}
			err = cl.pages(cmd.Context(), "/v2/zones/"+z.ID+"/history?"+q.Encode(), "history", h.page)
			return h.end(err)
		},
	}
	out.AddFlag(c)
	c.Flags().IntVar(&limit, "limit", 20, "show the last `N` changes")
	return c
}

// errEnough ends a walk through pages early.
var errEnough = errors.New("enough")

// historyPrinter prints changes as they come.
type historyPrinter struct {
	w       io.Writer
	json    *cli.JSONList
	zoneTTL uint32 // after the change to print next
	left    int    // changes to print still
	printed bool
}

func (h *historyPrinter) page(items []json.RawMessage) error {
	for _, item := range items {
		if h.left == 0 {
			return errEnough
		}
		h.left--
		if err := h.change(item); err != nil {
			return err
		}
	}
	return nil
}

func (h *historyPrinter) end(err error) error {
	if errors.Is(err, errEnough) {
		err = nil
	}
	if err == nil && h.json != nil {
		err = h.json.End()
	}
	return err
}

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

func (h *historyPrinter) describe(b *strings.Builder, ch historyChange) {
	if ch.To == 0 { // nothing of it can be read
		fmt.Fprintf(b, "change %s\n", cli.Printable(ch.ID))
	} else {
		fmt.Fprintf(b, "serial %d  %s  %s  %s\n", ch.To, humanTime(ch.CreatedAt), cli.Printable(ch.Who), cli.Printable(ch.Note))
	}
	switch {
	case ch.Damaged:
		b.WriteString("  (damaged: its records cannot be read, and nothing goes back beyond it)\n")
	case !ch.Complete:
		b.WriteString("  (too large a change for its records to be kept)\n")
	}
	ttl := historyTTL{h.zoneTTL, h.zoneTTL}
	if ch.ZoneTTL != nil {
		ttl = *ch.ZoneTTL
	}
	ttl.diff(b)
	for _, s := range ch.RecordSets {
		s.diff(b, ttl)
	}
	h.zoneTTL = ttl.Before // of all that came before
}

// humanTime is a time of the API, which is UTC, without what people do not read.
func humanTime(s string) string {
	s, _, _ = strings.Cut(s, ".")
	return strings.Replace(s, "T", " ", 1) + " UTC"
}

// diff writes a line for each record that went or came.
func (s historySet) diff(b *strings.Builder, zone historyTTL) {
	before, after := s.lines(s.Before, zone.Before), s.lines(s.After, zone.After)
	if s.Type == "SOA" && len(before) == 1 && len(after) == 1 && withoutSerial(s.lines(s.Before, zone.After)[0]) == withoutSerial(after[0]) {
		return // every change steps the serial, and the zone's TTL has lines of its own
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

// withoutSerial is the line of a SOA record without its third datum.
func withoutSerial(line string) string {
	f := strings.Fields(line)
	if len(f) > 5 {
		f[5] = ""
	}
	return strings.Join(f, " ")
}

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
