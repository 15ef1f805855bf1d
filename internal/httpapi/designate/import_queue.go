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
	slots map[string]*importSlots
}

// importSlots is the semaphore of a project, with one element for each import that is queued or running.
type importSlots struct {
	taken chan struct{}
	users int // the calls of take that release was not called for; guarded by importQueue.mu
}

func newImportQueue() *importQueue {
	return &importQueue{in: make(chan queuedImport), done: make(chan string), slots: map[string]*importSlots{}}
}

// take waits for a slot of a project until ctx ends. The caller must call release when the import has ended.
func (q *importQueue) take(ctx context.Context, project string) (release func(), err error) {
	q.mu.Lock()
	s := q.slots[project]
	if s == nil {
		s = &importSlots{taken: make(chan struct{}, maxQueued)}
		q.slots[project] = s
	}
	s.users++
	q.mu.Unlock()
	leave := func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if s.users--; s.users == 0 {
			delete(q.slots, project)
		}
	}
	select {
	case s.taken <- struct{}{}:
		return func() { <-s.taken; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}

// put queues an import. It blocks while its project has maxQueued imports, until ctx ends.
func (q *importQueue) put(ctx context.Context, project string, run func(context.Context)) error {
	release, err := q.take(ctx, project)
	if err != nil {
		return err
	}
	select {
	case q.in <- queuedImport{project, func(ctx context.Context) { defer release(); run(ctx) }}:
		return nil
	case <-ctx.Done():
		release()
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
