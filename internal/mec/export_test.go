package mec

// KeepEvents bounds the feed to the newest n events.
func (s *Service) KeepEvents(n uint64) { s.keep = n }
