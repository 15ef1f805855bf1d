package rig

import (
	"io"
	"net"
	"sync"

	"github.com/nameplane/nameplane/kubernetes/test/cluster"
)

// Link makes a TCP address of the test's own namespace, such as that of the API server, reachable at the same address
// in a pod, until it is cut. A cut ends connections at once, as when a process dies. Packet filters would leave them
// open until a timeout.
type Link struct {
	netns *cluster.NetNS
	addr  string

	mu    sync.Mutex // guards the fields below
	l     net.Listener
	conns map[net.Conn]bool
}

func newLink(t cluster.T, p *cluster.NetNS, addr string) (*Link, error) {
	k := &Link{netns: p, addr: addr}
	t.Cleanup(k.Cut)
	return k, k.Restore()
}

// Restore lets connections through again.
func (k *Link) Restore() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.l != nil {
		return nil
	}
	l, err := k.netns.Listen(k.addr)
	if err != nil {
		return err
	}
	k.l, k.conns = l, map[net.Conn]bool{}
	go k.accept(l)
	return nil
}

// Cut ends all connections and accepts none.
func (k *Link) Cut() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.l == nil {
		return
	}
	_ = k.l.Close()
	for c := range k.conns {
		_ = c.Close()
	}
	k.l, k.conns = nil, nil
}

func (k *Link) accept(l net.Listener) {
	for {
		in, err := l.Accept()
		if err != nil {
			return
		}
		go k.carry(in)
	}
}

// carry copies both directions. Each end is closed for writing only, because the other direction may still have data.
func (k *Link) carry(in net.Conn) {
	defer func() { _ = in.Close() }()
	out, err := net.Dial("tcp", k.addr)
	if err != nil {
		return
	}
	defer func() { _ = out.Close() }()
	if !k.add(in, out) {
		return
	}
	defer k.remove(in, out)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(out, in)
		_ = out.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(in, out)
	_ = in.(*net.TCPConn).CloseWrite()
	<-done
}

// add registers connections, so that Cut closes them. It returns false if the link was cut after Accept.
func (k *Link) add(conns ...net.Conn) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.l == nil {
		return false
	}
	for _, c := range conns {
		k.conns[c] = true
	}
	return true
}

func (k *Link) remove(conns ...net.Conn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range conns {
		delete(k.conns, c)
	}
}
