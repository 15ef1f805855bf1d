package daemon

import (
	"crypto/tls"
	"fmt"
	"net/netip"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/config"
	"github.com/nameplane/nameplane/internal/dnspeer"
	"github.com/nameplane/nameplane/internal/httpapi/designate"
	"github.com/nameplane/nameplane/internal/mec"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/transfer"
)

// openTransfer opens notifications, refreshes and transfers. It must run before the first commit.
func (d *Daemon) openTransfer() error {
	c := d.cfg.Transfer
	keys := transfer.NewKeyring(d.publisher)
	d.keys = keys
	apply, err := d.prepareTransferTLS()
	if err != nil {
		return err
	}
	apply()
	d.notifier = transfer.NewNotifier(d.publisher, transfer.NotifierOptions{Secondaries: secondaries(c), Log: d.log,
		Ask: keys.Ask})
	d.refresher = transfer.NewRefresher(d.publisher, keys,
		transfer.RefresherOptions{Log: d.log, Spool: d.data, Budget: d.budget, Special: d.cfg.Special()})
	d.peers = dnspeer.New(dnspeer.Config{Publisher: d.publisher, Keys: keys, Rules: transferRules(c), Log: d.log,
		Budget:   d.budget,
		Notified: func(zone uuid.UUID, _ netip.Addr) { d.refresher.Refresh(zone, false) }})
	return nil
}

// prepareTransferTLS reads the CAs of other servers and our certificate for them.
func (d *Daemon) prepareTransferTLS() (apply func(), err error) {
	roots, err := d.cfg.Transfer.CAs()
	if err != nil {
		return nil, err
	}
	var own []tls.Certificate
	if c := d.cfg.DNS; c.Cert != "" {
		pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
		if err != nil {
			return nil, fmt.Errorf("dns.cert: %w", err)
		}
		own = []tls.Certificate{pair}
	}
	return func() { d.keys.SetTLS(roots, own) }, nil
}

// onCommitted handles the changes of every commit, in order.
func (d *Daemon) onCommitted(changes []store.Change) {
	d.notifier.Committed(changes)
	mec.WarnSilenced(d.publisher, d.log, changes)
}

func secondaries(c config.Transfer) (out []transfer.Secondary) {
	for _, s := range c.Secondaries {
		out = append(out, transfer.Secondary{Addr: s.Remote(), Key: s.KeyName()})
	}
	return out
}

func transferRules(c config.Transfer) dnspeer.Rules {
	r := dnspeer.Rules{Networks: c.Networks(), Keys: c.Keys()}
	for _, s := range c.Certificates() {
		r.Certificates = append(r.Certificates, dnspeer.Certificate{Name: s.Certificate, Key: s.KeyName()})
	}
	return r
}

// reloadTransfer changes which servers are notified and which may transfer zones.
func (d *Daemon) reloadTransfer(c config.Transfer) {
	d.peers.SetRules(transferRules(c))
	d.notifier.SetSecondaries(secondaries(c))
}

// designatePeers returns the functions through which the zones API reports about other servers.
func (d *Daemon) designatePeers() designate.Peers {
	return designate.Peers{Progress: d.notifier.Progress, Refresh: d.refresher.Refresh, Copy: d.refresher.State}
}
