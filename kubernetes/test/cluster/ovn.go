package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/nameplane/nameplane/test/server"
)

// OVNOptions configure a node.
type OVNOptions struct {
	// number of the node, 0 to 255: it is called nodeN and has the pods of 10.128.N.0/24 and fd00:10:128:N::/64
	Number   int
	External *External // shared with other nodes; nil creates a new one
	From     string    // folder of another OVN than the machine's, such as Later; default: Elsewhere
}

// OVN is a node with its own northbound database, as in OVN-Kubernetes with one zone per node. The pods are on a
// logical switch behind a logical router to the internet, on a real switch with the userspace datapath.
type OVN struct {
	Node     string
	NB, SB   string // addresses of the databases: unix:/…
	Switch   string // address of the database of the switch
	Pods     []netip.Prefix
	External *External
	Dir      string // temporary folder with the logs

	// To kill, pause and start again.
	NBServer, SBServer, Northd, Controller, Vswitchd *Process

	host   *NetNS // namespace of the switch
	number int
	from   string // folder of its programs

	mu   sync.Mutex // guards last
	last int        // number of the last pod address
}

// ClusterSubnets are the subnets of the pods of all nodes.
func ClusterSubnets() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("10.128.0.0/16"), netip.MustParsePrefix("fd00:10:128::/48")}
}

// StartOVN starts a node and returns when its switch has applied the northbound database.
func StartOVN(t T, opts OVNOptions) *OVN {
	t.Helper()
	begun := time.Now()
	if err := Missing(); err != nil {
		t.Fatalf("%v", err)
	}
	if opts.External == nil {
		opts.External = StartExternal(t)
	}
	o := &OVN{
		Node: fmt.Sprintf("node%d", opts.Number), Dir: tempDir(t), External: opts.External, number: opts.Number,
		from: folder(opts.From), last: 9,
		Pods: []netip.Prefix{
			netip.MustParsePrefix(fmt.Sprintf("10.128.%d.0/24", opts.Number)),
			netip.MustParsePrefix(fmt.Sprintf("fd00:10:128:%x::/64", opts.Number)),
		},
	}
	o.NB, o.SB, o.Switch = "unix:"+o.file("nb.sock"), "unix:"+o.file("sb.sock"), "unix:"+o.file("ovs.sock")
	for _, step := range []func(T) error{o.startDatabases, o.startSwitch, o.startControl, o.connect} {
		if err := step(t); err != nil {
			t.Fatalf("start OVN: %v", err)
		}
	}
	if err := o.Sync(); err != nil {
		t.Fatalf("start OVN: %v\n%s\n%s\n%s", err, o.Northd.Log(), o.Controller.Log(), o.Vswitchd.Log())
	}
	t.Logf("OVN was ready after %v", time.Since(begun).Round(time.Millisecond))
	return o
}

func (o *OVN) file(name string) string { return filepath.Join(o.Dir, name) }

// env sets variables with which the programs find each other in the node's folder.
func (o *OVN) env() []string {
	var out []string
	for _, name := range []string{"OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR", "OVN_RUNDIR", "OVN_LOGDIR",
		"OVN_DBDIR", "OVN_SYSCONFDIR"} {
		out = append(out, name+"="+o.Dir)
	}
	return out
}

// daemon starts a program of OVN. The log has the name that the program has here, because three of them are the same
// program.
func (o *OVN) daemon(t T, name, program string, args ...string) (*Process, error) {
	path, err := o.program(program)
	if err != nil {
		return nil, err
	}
	p := &Process{server.Process{Name: name, Env: o.env(), LogFile: o.file(name + ".log"),
		Command: append([]string{"nsenter", "--net=" + o.host.Path(), "--", path}, args...)}}
	t.Cleanup(p.Kill)
	return p, p.Start()
}

func (o *OVN) startDatabases(t T) (err error) {
	if o.host, err = newNetNS(t); err != nil {
		return err
	}
	schemas := map[string]string{"ovs": o.schema("openvswitch/vswitch"), "nb": o.schema("ovn/ovn-nb"),
		"sb": o.schema("ovn/ovn-sb")}
	servers := map[string]*Process{}
	for name, schema := range schemas {
		if _, err := o.run("ovsdb-tool", "create", o.file(name+".db"), schema); err != nil {
			return err
		}
		if servers[name], err = o.daemon(t, name, "ovsdb-server", "--unixctl="+o.file(name+".ctl"), "--remote=punix:"+
			o.file(name+".sock"), o.file(name+".db")); err != nil {
			return err
		}
	}
	o.NBServer, o.SBServer = servers["nb"], servers["sb"]
	for name := range schemas {
		if err := waitFile(o.file(name+".sock"), servers[name]); err != nil {
			return err
		}
	}
	return nil
}

// waitFile waits for a socket that a program creates.
func waitFile(path string, p *Process) error {
	return wait(readyIn, func(context.Context) error {
		if p.Ended() {
			return fatal{fmt.Errorf("%s ended: %s", p.Name, p.Log())}
		}
		_, err := os.Stat(path)
		return err
	})
}

func (o *OVN) startSwitch(t T) (err error) {
	if _, err := o.VSCtl("--no-wait", "init", "--", "set", "Open_vSwitch", ".",
		"external_ids:system-id="+o.Node, "external_ids:hostname="+o.Node, "external_ids:ovn-remote="+o.SB,
		"external_ids:ovn-encap-type=vxlan", "external_ids:ovn-encap-ip=127.0.0.1",
		"external_ids:ovn-bridge-datapath-type=netdev"); err != nil {
		return err
	}
	o.Vswitchd, err = o.daemon(t, "vswitchd", "ovs-vswitchd", "--unixctl="+o.file("vswitchd.ctl"), o.Switch)
	return err
}

func (o *OVN) startControl(t T) (err error) {
	if o.Northd, err = o.daemon(t, "northd", "ovn-northd", "--unixctl="+o.file("northd.ctl"), "--ovnnb-db="+o.NB,
		"--ovnsb-db="+o.SB); err != nil {
		return err
	}
	o.Controller, err = o.daemon(t, "controller", "ovn-controller", o.Switch)
	return err
}

// run runs a program of OVN to its end and returns its output.
func (o *OVN) run(program string, args ...string) (string, error) {
	path, err := o.program(program)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), readyIn)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(), o.env()...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", program, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// NBCtl runs ovn-nbctl.
func (o *OVN) NBCtl(args ...string) (string, error) {
	return o.run("ovn-nbctl", append([]string{"--db=" + o.NB, "--timeout=60"}, args...)...)
}

// SBCtl runs ovn-sbctl.
func (o *OVN) SBCtl(args ...string) (string, error) {
	return o.run("ovn-sbctl", append([]string{"--db=" + o.SB, "--timeout=60"}, args...)...)
}

// VSCtl runs ovs-vsctl.
func (o *OVN) VSCtl(args ...string) (string, error) {
	return o.run("ovs-vsctl", append([]string{"--db=" + o.Switch, "--timeout=60"}, args...)...)
}

// AppCtl sends a command to a running program by its name in this package: vswitchd, northd, controller, nb, sb.
func (o *OVN) AppCtl(name string, args ...string) (string, error) {
	socket := o.file(name + ".ctl")
	if name == "controller" { // the only one whose socket path cannot be set
		socket = o.file(fmt.Sprintf("ovn-controller.%d.ctl", o.Controller.PID()))
	}
	return o.run("ovs-appctl", append([]string{"--target=" + socket}, args...)...)
}

// Trace runs ovn-trace for a packet on the switch of the pods.
func (o *OVN) Trace(packet string, options ...string) (string, error) {
	return o.run("ovn-trace", append(append([]string{"--db=" + o.SB}, options...), o.Node, packet)...)
}

// Sync waits until the switch has applied the current northbound database.
func (o *OVN) Sync() error {
	_, err := o.NBCtl("--wait=hv", "sync")
	return err
}

// Version returns the version of OVN.
func (o *OVN) Version() (string, error) {
	out, err := o.run("ovn-nbctl", "--version")
	first, _, _ := strings.Cut(out, "\n")
	return strings.TrimPrefix(first, "ovn-nbctl "), err
}

// HasColumn reports whether a table of this version's northbound schema has a column, such as tier of ACL.
func (o *OVN) HasColumn(table, column string) (bool, error) {
	out, err := o.run("ovsdb-client", "get-schema", o.NB, "OVN_Northbound")
	if err != nil {
		return false, err
	}
	var schema struct {
		Tables map[string]struct{ Columns map[string]any }
	}
	if err := json.Unmarshal([]byte(out), &schema); err != nil {
		return false, err
	}
	_, ok := schema.Tables[table].Columns[column]
	return ok, nil
}
