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

const mecWatchLong = `Print changes of rules as they happen, one per line, until interrupted. If the
connection is lost, the command reconnects and prints the changes that it missed.

With -o json each line is a DnsRuleChangeNotification. To continue later, pass its
sequence to --after. The server keeps the newest 10,000 changes.`

// newMecWatch selects the changes of --app itself. The server has one stream for all applications, and --after
// continues at a number of that stream.
func newMecWatch(conn *connection) *cobra.Command {
	var out cli.Format
	w := &ruleWatch{}
	c := &cobra.Command{
		Use:   "watch [--app ID]",
		Short: "Watch changes of rules",
		Long:  mecWatchLong,
		Example: `  nameplane mec watch
  nameplane mec watch --app game-1 --after 1041 -o json`,
		Args: cli.Args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if w.count < 0 {
				return cli.Usage(cmd, "--count %d: must be 0 or more", w.count)
			}
			cl, err := conn.open(cmd.Context())
			if err != nil {
				return err
			}
			w.cmd, w.out, w.client = cmd, out, cl
			return w.run(cmd.Context())
		},
	}
	out.AddFlag(c)
	appFlag(c, &w.app, false)
	c.Flags().StringVar(&w.after, "after", "",
		"print the changes after this `SEQUENCE` number (default: new changes only)")
	c.Flags().IntVar(&w.count, "count", 0, "stop after this `NUMBER` of changes (default: never)")
	return c
}

// ruleWatch prints a stream of changes. It reconnects when a connection ends.
type ruleWatch struct {
	cmd    *cobra.Command
	client *client
	out    cli.Format
	app    string
	after  string // sequence number of the last change that was printed
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
	watchSilence = time.Minute // reconnect after this time without data; the server sends data every 15 s
	watchPause   = time.Second // between two connections
)

// run reconnects when the server ends a stream. The first connection must succeed. Later ones are tried until they
// succeed, because the server may be restarting.
func (w *ruleWatch) run(ctx context.Context) error {
	for first := true; ; first = false {
		err := w.connect(ctx)
		if ctx.Err() != nil || w.count > 0 && w.seen == w.count {
			return nil // interrupted, or --count is reached
		}
		// A 4xx will not change by itself, except 429. Everything else can be a server that restarts.
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

// connect prints the changes of one connection until it ends. The stream has no time limit other than watchSilence.
func (w *ruleWatch) connect(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	path := "/mep/config/events"
	req, err := w.client.request(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "text/event-stream")
	// Last-Event-ID is how a client of server-sent events continues after a lost connection.
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
	// bufio.Scanner stops at a line of more than 64 KiB by default.
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
			// Remember the id only at the end of the event: if the connection ends before, the server must send it
			// again.
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

// print prints one event of the stream.
func (w *ruleWatch) print(event, data string) error {
	if event == "gap" {
		var gap struct{ Oldest uint64 }
		if err := json.Unmarshal([]byte(data), &gap); err != nil {
			return err
		}
		fmt.Fprintf(w.cmd.ErrOrStderr(), "nameplane: changes before %s were missed: the server no longer keeps them\n",
			strconv.FormatUint(gap.Oldest, 10))
		return nil
	}
	var c changeReply
	if err := json.Unmarshal([]byte(data), &c); err != nil {
		return cli.Fail(notNameplane, "%s sent an event that is not a change: %s", w.client.base, err)
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
