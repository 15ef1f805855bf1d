package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
)

const mecWatchLong = `Print changes of rules as they happen, one per line, until interrupted. When the
connection is lost it is made again, and nothing that happened meanwhile is missed.

With -o json each line is a DnsRuleChangeNotification. Its sequence, given to --after
another time, goes on behind it: the server keeps the newest 10,000 changes.`

func newMecWatch(conn *connection) *cobra.Command {
	var out cli.Format
	w := &watch{}
	c := &cobra.Command{
		Use:   "watch [--app ID]",
		Short: "Watch rules change",
		Long:  mecWatchLong,
		Example: `  nameplane mec watch
  nameplane mec watch --app game-1 --after 1041 -o json`,
		Args: cli.Args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if w.count < 0 {
				return cli.Usage(cmd, "--count is %d", w.count)
			}
			cl, err := conn.open(cmd.Context())
			if err != nil {
				return err
			}
			// The stream has no time limit except for silence.
			w.cmd, w.out, w.client = cmd, out, cl
			return w.run(cmd.Context())
		},
	}
	out.AddFlag(c)
	appFlag(c, &w.app, false)
	c.Flags().StringVar(&w.after, "after", "", "begin behind the change with this `SEQUENCE` (default: with the next one)")
	c.Flags().IntVar(&w.count, "count", 0, "end after this `NUMBER` of changes (default: never)")
	return c
}

// watch is a stream of changes, over as many connections as it takes.
type watch struct {
	cmd    *cobra.Command
	client *client
	out    cli.Format
	app    string
	after  string // the last change that was seen
	count  int
	seen   int
}

// changeReply is a notification of one change.
type changeReply struct {
	App    string `json:"appInstanceId"`
	Change string `json:"changeType"`
	Time   struct {
		Seconds int64 `json:"seconds"`
	} `json:"timeStamp"`
	Rule ruleReply `json:"dnsRule"`
}

const (
	watchSilence = time.Minute // the server says something every quarter of it
	watchPause   = time.Second
)

// run connects again when the server ends a stream. The first connection must succeed; later ones may take their time,
// for a server that restarts.
func (w *watch) run(ctx context.Context) error {
	for first := true; ; first = false {
		err := w.connect(ctx)
		if ctx.Err() != nil || w.count > 0 && w.seen == w.count {
			return nil // as the person wanted
		}
		if err != nil && (first || status(err) != 0 && status(err) < 500 && status(err) != http.StatusTooManyRequests) {
			return err
		}
		select {
		case <-time.After(watchPause):
		case <-ctx.Done():
			return nil
		}
	}
}

// connect reads one stream to its end.
func (w *watch) connect(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	path := "/mep/config/events"
	req, err := w.client.request(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "text/event-stream")
	if w.after != "" {
		req.Header.Set("Last-Event-ID", w.after)
	}
	silence := time.AfterFunc(watchSilence, cancel)
	defer silence.Stop()
	res, err := w.client.send(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	var event, id string
	for lines.Scan() {
		silence.Reset(watchSilence)
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "event":
			event = value
		case "id":
			id = value
		case "data":
			if err := w.print(event, value); err != nil {
				return err
			}
		case "": // the end of an event
			if id != "" {
				w.after = id
			}
			event, id = "", ""
		}
		if w.count > 0 && w.seen == w.count {
			return nil
		}
	}
	return lines.Err()
}

// print shows one event.
func (w *watch) print(event, data string) error {
	if event == "gap" {
		var gap struct{ Oldest uint64 }
		if err := json.Unmarshal([]byte(data), &gap); err != nil {
			return err
		}
		fmt.Fprintf(w.cmd.ErrOrStderr(), "nameplane: changes before %s are no longer kept and were missed\n", strconv.FormatUint(gap.Oldest, 10))
		return nil
	}
	var c changeReply
	if err := json.Unmarshal([]byte(data), &c); err != nil {
		return cli.Fail("is this address a nameplane server's?", "%s sent something else than a change: %s", w.client.base, err)
	}
	if w.app != "" && c.App != w.app {
		return nil
	}
	w.seen++
	if w.out.JSON() {
		return cli.Say(w.cmd, "%s", data)
	}
	cells := c.Rule.cells()
	for i := range cells {
		cells[i] = cmp.Or(cells[i], "-")
	}
	at := time.Unix(c.Time.Seconds, 0).UTC().Format(time.RFC3339)
	return cli.Say(w.cmd, "%s %s %s %s", at, c.Change, c.App, strings.Join(cells, " "))
}
