package mec

import "context"

func (s *Service) expire(ctx context.Context) error    { return nil }
func (s *Service) runExpiry(ctx context.Context) error { return nil }
