package transfer

import "github.com/google/uuid"

// InSync reports whether every secondary has the newest serial of a zone.
func (n *Notifier) InSync(id uuid.UUID) bool {
	for _, p := range n.Progress(id) {
		if !p.InSync {
			return false
		}
	}
	return true
}
