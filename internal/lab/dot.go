package lab

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"sync"
)

// openTLS opens sockets for the resolvers with TLS (RFC 7858), and returns the functions that serve them. All
// addresses of a resolver lead to the server at its first address.
func (l *Lab) openTLS(o Options) (run []func(context.Context) error, err error) {
	for _, r := range l.Resolvers {
		if r.TLS == "" {
			continue
		}
		cert, err := l.registry.authority.issue([]string{r.TLS}, r.Addrs...)
		if err != nil {
			return run, err
		}
		var services []service
		for _, a := range r.Addrs {
			services = append(services, service{addr: a})
		}
		at, err := l.listen(o, services, "853")
		if err != nil {
			return run, err
		}
		secure := tls.NewListener(at, &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"dot"},
			MinVersion: tls.VersionTLS12})
		run = append(run, func(ctx context.Context) error {
			return accept(ctx, secure, func(c net.Conn) { l.Net.ServeConn(ctx, c, netip.AddrPortFrom(r.Addrs[0], 53)) })
		})
	}
	return run, nil
}

// accept serves connections, each in its own goroutine, until ctx ends or the listener is closed.
func accept(ctx context.Context, at net.Listener, serve func(net.Conn)) error {
	var all sync.WaitGroup
	defer all.Wait()
	stop := context.AfterFunc(ctx, func() { at.Close() })
	defer stop()
	for {
		c, err := at.Accept()
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return nil
			}
			return err
		}
		all.Go(func() { serve(c) })
	}
}
