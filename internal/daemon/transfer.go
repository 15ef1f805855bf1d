package daemon

import (
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
func (d *Daemon) openTransfer() {
	c := d.cfg.Transfer
	keys := transfer.NewKeyring(d.publisher)
	d.notifier = transfer.NewNotifier(d.publisher, transfer.NotifierOptions{Secondaries: secondaries(c), Log: d.log,
		Ask: keys.Ask})
	d.refresher = transfer.NewRefresher(d.publisher, keys,
		transfer.RefresherOptions{Log: d.log, Spool: d.data, Budget: d.budget, Special: d.cfg.Special()})
	d.peers = dnspeer.New(dnspeer.Config{Publisher: d.publisher, Keys: keys, Rules: transferRules(c), Log: d.log,
		Budget:   d.budget,
		Notified: func(zone uuid.UUID, _ netip.Addr) { d.refresher.Refresh(zone, false) }})
}

// onCommitted handles the changes of every commit, in order.
func (d *Daemon) onCommitted(changes []store.Change) {
	d.notifier.Committed(changes)
	mec.WarnSilenced(d.publisher, d.log, changes)
}

func secondaries(c config.Transfer) (out []transfer.Secondary) {
	for _, s := range c.Secondaries {
		out = append(out, transfer.Secondary{Addr: s.AddrPort(), Key: s.KeyName()})
	}
	return out
}

func transferRules(c config.Transfer) dnspeer.Rules {
	return dnspeer.Rules{Networks: c.Networks(), Keys: c.Keys()}
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
