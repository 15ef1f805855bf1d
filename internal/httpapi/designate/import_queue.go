package designate

import (
	"context"
	"runtime/debug"
	"sync"
)

// queuedImport is a zone file that came in and is to be committed.
type queuedImport struct {
	project string
	run     func(context.Context)
}

// maxQueued is how many imports of one project may be queued or running.
const maxQueued = 16

// importQueue runs imports. Those of one project run one after the other, in the order in which they came, and those of
// different projects at the same time: one that waits for memory, or because its project took much time of the
// committer, holds up no other project. The memory budget bounds what they take together.
type importQueue struct {
	in   chan queuedImport
	done chan string // projects whose import has ended

	mu   sync.Mutex // guards room
	room map[string]chan struct{}
}

func newImportQueue() *importQueue {
	return &importQueue{in: make(chan queuedImport), done: make(chan string), room: map[string]chan struct{}{}}
}

// roomOf returns a channel with an element for each import of a project that is queued or running.
func (q *importQueue) roomOf(project string) chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.room[project] == nil {
		q.room[project] = make(chan struct{}, maxQueued)
	}
	return q.room[project]
}

// put queues an import. It blocks while its project has too many, until ctx ends.
func (q *importQueue) put(ctx context.Context, project string, run func(context.Context)) error {
	room := q.roomOf(project)
	select {
	case room <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case q.in <- queuedImport{project, func(ctx context.Context) { defer func() { <-room }(); run(ctx) }}:
		return nil
	case <-ctx.Done():
		<-room
		return ctx.Err()
	}
}

// work runs what is queued until ctx ends. It returns when the imports that run have ended.
func (q *importQueue) work(ctx context.Context) {
	lines := map[string][]queuedImport{} // of each project; the first one runs
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
