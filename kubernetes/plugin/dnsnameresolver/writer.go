package dnsnameresolver

import (
	"bytes"
	"net"
	"net/netip"

	"github.com/coredns/coredns/plugin"
	"github.com/miekg/dns"
)

// heldWriter is a dns.ResponseWriter that keeps a reply until release is called.
type heldWriter struct {
	dns.ResponseWriter
	msg *dns.Msg
	raw []byte // not nil if the message was written in wire form
}

// WriteMsg keeps a message. If the plugin writes a second one, the first one is sent.
func (w *heldWriter) WriteMsg(m *dns.Msg) error {
	err := w.release()
	w.msg = m
	return err
}

// Write keeps a message in wire form.
func (w *heldWriter) Write(b []byte) (int, error) {
	m := new(dns.Msg)
	if err := m.Unpack(b); err != nil {
		return w.ResponseWriter.Write(b)
	}
	err := w.release()
	w.msg, w.raw = m, bytes.Clone(b) // the caller may reuse b after Write returns
	return len(b), err
}

// release writes the kept message to the underlying writer.
func (w *heldWriter) release() error {
	m, raw := w.msg, w.raw
	w.msg, w.raw = nil, nil
	switch {
	case raw != nil:
		_, err := w.ResponseWriter.Write(raw)
		return err
	case m != nil:
		return w.ResponseWriter.WriteMsg(m)
	}
	return nil
}

// SetPlugin and GetPlugin implement plugin.PluginTracker, with which CoreDNS counts which plugin answered.
func (w *heldWriter) SetPlugin(name string) {
	if t, ok := w.ResponseWriter.(plugin.PluginTracker); ok {
		t.SetPlugin(name)
	}
}

func (w *heldWriter) GetPlugin() string {
	if t, ok := w.ResponseWriter.(plugin.PluginTracker); ok {
		return t.GetPlugin()
	}
	return ""
}

// discardWriter is the writer for queries that the plugin repeats on behalf of an earlier client. It discards the
// reply.
type discardWriter struct{ client netip.AddrPort }

func (n discardWriter) LocalAddr() net.Addr {
	return net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:53"))
}
func (n discardWriter) RemoteAddr() net.Addr {
	if !n.client.IsValid() {
		return n.LocalAddr()
	}
	return net.UDPAddrFromAddrPort(n.client)
}
func (discardWriter) WriteMsg(*dns.Msg) error     { return nil }
func (discardWriter) Write(b []byte) (int, error) { return len(b), nil }
func (discardWriter) Close() error                { return nil }
func (discardWriter) TsigStatus() error           { return nil }
func (discardWriter) TsigTimersOnly(bool)         {}
func (discardWriter) Hijack()                     {}
