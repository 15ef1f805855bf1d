package designate

import (
	"context"
	"runtime/debug"
	"sync"
)

// queuedImport is an uploaded zone file that waits for its commit.
type queuedImport struct {
	project string
	run     func(context.Context)
}

// maxQueued bounds the imports of one project that are queued or running.
const maxQueued = 16

// importQueue runs imports. The imports of one project run one after the other, in the order of their uploads; those of
// different projects run at the same time. So an import that waits for memory, or because its project used much time of
// the committer, does not delay other projects. The memory budget bounds all of them together.
type importQueue struct {
	in   chan queuedImport
	done chan string // the project of each import that has ended

	mu    sync.Mutex // guards slots
	slots map[string]chan struct{}
}

func newImportQueue() *importQueue {
	return &importQueue{in: make(chan queuedImport), done: make(chan string), slots: map[string]chan struct{}{}}
}

// slotsOf returns the semaphore of a project: a channel with one element for each import that is queued or running.
func (q *importQueue) slotsOf(project string) chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.slots[project] == nil {
		q.slots[project] = make(chan struct{}, maxQueued)
	}
	return q.slots[project]
}

// put queues an import. It blocks while its project has maxQueued imports, until ctx ends.
func (q *importQueue) put(ctx context.Context, project string, run func(context.Context)) error {
	slots := q.slotsOf(project)
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case q.in <- queuedImport{project, func(ctx context.Context) { defer func() { <-slots }(); run(ctx) }}:
		return nil
	case <-ctx.Done():
		<-slots
		return ctx.Err()
	}
}

// work runs queued imports until ctx ends. It returns when the running imports have ended.
func (q *importQueue) work(ctx context.Context) {
	lines := map[string][]queuedImport{} // by project; the first import of each line runs
	var running sync.WaitGroup
	defer running.Wait()
	start := func(i queuedImport) {
		running.Go(func() {
			i.run(ctx)
			debug.FreeOSMemory() // the import may have held much of a large zone in memory
			select {
			case q.done <- i.project:
			case <-ctx.Done():
			}
		})
	}
	for {
		select {
		case i := <-q.in:
			if lines[i.project] = append(lines[i.project], i); len(lines[i.project]) == 1 {
				start(i)
			}
		case project := <-q.done:
			if lines[project] = lines[project][1:]; len(lines[project]) > 0 {
				start(lines[project][0])
			} else {
				delete(lines, project)
			}
		case <-ctx.Done():
			return
		}
	}
}
