// Package designate serves the zones API of OpenStack Designate, version 2, so that its clients work unchanged, and
// adds entity tags, atomic batches, history and rollback.
//
// Start with Routes in routes.go: it lists every operation and its handler. dispatch in this file runs a request; its
// types are in call.go. Errors have the types, statuses and messages of Designate where it has them: see errors.go.
// README.md lists the differences.
package designate

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/nameplane/nameplane/internal/alias"
	"github.com/nameplane/nameplane/internal/budget"
	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
)

// API serves the zones of a Publisher.
type API struct {
	Publisher *publish.Publisher
	Settings  Settings
	Peers     Peers
	Aliases   *alias.Service // flattens ALIAS record sets
	Log       *slog.Logger   // default: none
	Budget    *budget.Budget // bounds the memory that imports take

	// HasProject reports whether a project exists; nil: not known. Quotas of other projects cannot be set.
	HasProject func(id string) bool

	// Identity returns the entry of the identity service in version documents; nil: there is no identity service.
	Identity func(base string) any

	once    sync.Once
	mux     *http.ServeMux
	imports *importQueue

	poolsDue chan struct{} // see wakePools

	uploads httpapi.Shares[string] // running uploads of zone files, by project

	downloads httpapi.Shares[string] // streamed replies that are being sent, by project
	started   time.Time
	damaged   sync.Map // damaged changes of the history that were logged already
}

func (a *API) init() {
	a.once.Do(func() {
		a.mux = newMux()
		a.uploads.Max, a.downloads.Max = maxUploads, maxDownloads
		a.started = time.Now()
		a.imports = newImportQueue()
		a.poolsDue = make(chan struct{}, 1)
		a.Log = cmp.Or(a.Log, slog.New(slog.DiscardHandler))
	})
}

// Handler serves the version documents at / and /dns, and everything below /v2. The request's context must carry an
// authenticated httpapi.Caller.
func (a *API) Handler() http.Handler {
	a.init()
	return http.HandlerFunc(a.serve)
}

// Run imports the zone files that requests have uploaded, until ctx ends. At the start it marks the imports that an
// earlier process did not finish as failed. It gives zones the new name servers of their pools. Every hour it deletes
// finished tasks and requests that have expired.
func (a *API) Run(ctx context.Context) error {
	a.init()
	if err := ignoreUnavailable(a.failInterruptedImports(ctx)); err != nil {
		return err
	}
	var queue sync.WaitGroup
	defer queue.Wait()
	queue.Go(func() { a.imports.work(ctx) })
	queue.Go(func() { a.runPools(ctx) })
	a.tidy(ctx)
	tidy := time.NewTicker(tidyEvery)
	defer tidy.Stop()
	for {
		select {
		case <-tidy.C:
			a.tidy(ctx)
		case <-ctx.Done():
			return nil
		}
	}
}

// ignoreUnavailable drops the errors of a store that accepts no changes, and of a server that shuts down: zones are
// served in both states.
func ignoreUnavailable(err error) error {
	if errors.Is(err, store.ErrUnavailable) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func (a *API) serve(w http.ResponseWriter, r *http.Request) {
	trimmed := withoutSlash(r)
	a.mux.ServeHTTP(&unrouted{w, &call{api: a, settings: &a.Settings, w: w, r: r}}, trimmed)
	r.Pattern = trimmed.Pattern // package httpapi counts requests by pattern
}

// dispatch checks whether the caller may use the route, and runs its handler.
func (c *call) dispatch() (reply, error) {
	if err := c.readScope(); err != nil {
		return reply{}, err
	}
	if err := c.allow(c.route.need); err != nil {
		return reply{}, err
	}
	if err := c.checkAccept(); err != nil {
		return reply{}, err
	}
	return c.route.handle(c)
}
