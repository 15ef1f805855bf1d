package store

// Stager is a Store that can run an Update while the one before it is made durable.
type Stager interface {
	Store
	// Stage is Update, but for its end: it waits for the Stage before, and returns when what fn wrote is on its way to the
	// medium. Further Updates and Stages see it at once, Views when it is durable. When a Stage fails after all, so does
	// the one that ran on top of it, whose own Stage then returns an error: nothing of either is ever seen.
	Stage(fn func(Writer) error) (*Staged, error)
}

// Staged is an Update on its way to the medium.
type Staged struct {
	done   chan struct{}
	err    error
	beside bool
}

// NewStaged is for stores. beside says whether another Stage can run while this one is under way.
func NewStaged(beside bool) *Staged { return &Staged{done: make(chan struct{}), beside: beside} }

// End says how it went; it is called once.
func (s *Staged) End(err error) {
	s.err = err
	close(s.done)
}

// Done is closed when it is durable and Views see it, or when it has failed.
func (s *Staged) Done() <-chan struct{} { return s.done }

// Err waits until it is done, and says how it went.
func (s *Staged) Err() error {
	<-s.done
	return s.err
}

// Beside reports whether another Stage can run while this one is under way; if not, it would only wait.
func (s *Staged) Beside() bool { return s.beside }
