package zonefile

// Truncate cuts the file of a Stage that was read.
func (s *Stage) Truncate(n int64) error { return s.f.Truncate(n) }
