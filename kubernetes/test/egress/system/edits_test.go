package system

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	apiv1 "github.com/nameplane/nameplane/kubernetes/api/v1"
	"github.com/nameplane/nameplane/kubernetes/test/egress/rig"
)

// editedRules removes the rules of a firewall one by one, and reorders them while packets flow.
func editedRules(s *story) {
	one, two := s.sys.Authority.New(), s.sys.Authority.New()
	s.sys.Authority.Say(s.name("one"), rig.Answer{Addrs: one, TTL: time.Minute})
	s.sys.Authority.Say(s.name("two"), rig.Answer{Addrs: two, TTL: time.Minute})
	allow1, allow2 := "allow one."+s.ns+".test", "allow two."+s.ns+".test"
	s.firewall(allow1, allow2, "deny 0.0.0.0/0", "deny ::/0")
	s.reaches(s.pod, s.server, s.name("one"), dns.TypeA)
	s.reaches(s.pod, s.server, s.name("two"), dns.TypeA)

	// In both orders both destinations are allowed, and neither may ever be denied in between.
	ctx, stop := context.WithCancel(s.Context())
	lost := make(chan error, 1)
	go func() { lost <- connectAlways(ctx, s, one[0], two[0]) }()
	for i := range 6 {
		rules := []string{allow1, allow2, "deny 0.0.0.0/0", "deny ::/0"}
		if i%2 == 0 {
			rules = []string{allow2, "deny ::/0", allow1, "deny 0.0.0.0/0"}
		}
		s.firewall(rules...)
	}
	stop()
	if err := <-lost; err != nil {
		s.Errorf("while rules were put in another order: %v", err)
	}

	s.firewall(allow1, "deny 0.0.0.0/0", "deny ::/0")
	s.dropped(s.pod, two[0])
	s.reaches(s.pod, s.server, s.name("one"), dns.TypeA)
	s.firewall(allow2, "deny 0.0.0.0/0", "deny ::/0") // the rule was removed before
	s.reaches(s.pod, s.server, s.name("two"), dns.TypeA)
	s.dropped(s.pod, one[0])
	s.firewall(allow2)
	if !rig.Connects(s.pod, one[0], 80, soon) {
		s.Errorf("%s is not reached without a rule that denies it", one[0])
	}
	s.firewall("deny 0.0.0.0/0")
	s.dropped(s.pod, two[0])
}

func connectAlways(ctx context.Context, s *story, to ...netip.Addr) error {
	n := 0
	for ; ctx.Err() == nil; n++ {
		d := s.pod.Dial(netip.AddrPortFrom(to[n%len(to)], 80), soon)
		if d.Err != nil || d.Lost > 0 {
			return fmt.Errorf("connection %d to %s: %v with %d SYNs lost", n, to[n%len(to)], d.Err, d.Lost)
		}
		_ = d.Conn.Close()
	}
	s.Logf("%d connections meanwhile", n)
	return nil
}

// repairedByHand deletes or edits our objects and rows by hand.
func repairedByHand(s *story) {
	s.sys.Authority.Fresh(s.ns+".test", time.Minute)
	s.firewall()
	node := s.sys.Nodes[0]
	addr := s.reaches(s.pod, s.server, s.name("www"), dns.TypeA)
	wild := "*." + s.ns + ".test"
	s.within(soon, "it was stored", func() error {
		got, err := s.sys.Stored(wild)
		if err == nil && len(got) == 0 {
			err = errors.New("nothing")
		}
		return err
	})
	must := func(out string, err error) string {
		s.Helper()
		if err != nil {
			s.Fatal(err)
		}
		return out
	}
	whole := func(what string) {
		s.Helper()
		s.within(soon, what+" was mended", func() error { return s.sys.Check(time.Now().Add(-time.Hour)) })
		if !rig.Connects(s.pod, addr, 80, soon) {
			s.Errorf("%s is not reached after %s was mended", addr, what)
		}
		// The rows are back. The switch follows, and its cached flows a moment later.
		s.within(soon, what+" was enforced again", func() error {
			if to := s.sys.Authority.New()[0]; rig.Connects(s.pod, to, 80, never) {
				return fmt.Errorf("%s is reached", to)
			}
			return nil
		})
		s.dropped(s.pod, s.sys.Authority.New()[0])
	}

	set := must(node.NBCtl("--bare", "--columns=name", "find", "Address_Set", `external_ids:"k8s.ovn.org/name"="`+wild+
		`."`, "external_ids:ip-family=v4",
		`external_ids:"k8s.ovn.org/owner-type"=EgressFirewallDNS`))
	must(node.NBCtl("clear", "Address_Set", set, "addresses"))
	whole("an emptied address set")
	must(node.NBCtl("add", "Address_Set", set, "addresses", "198.19.255.254"))
	whole("an address added by hand")
	must(node.NBCtl("destroy", "Address_Set", set))
	whole("a deleted address set")
	acl := must(node.NBCtl("--bare", "--columns=_uuid", "find", "ACL", "name=EF\\:"+s.ns+"\\:0"))
	must(node.NBCtl("set", "ACL", acl, "action=drop", "priority=1"))
	whole("an edited ACL")
	group := must(node.NBCtl("--bare", "--columns=_uuid", "find", "Port_Group", `external_ids:"k8s.ovn.org/name"=`+s.ns))
	must(node.NBCtl("clear", "Port_Group", group, "acls"))
	whole("a port group without ACLs")

	obj, err := s.sys.Name(wild)
	if err != nil {
		s.Fatal(err)
	}
	if err := s.sys.Admin.Delete(s.Context(), obj); err != nil {
		s.Fatal(err)
	}
	s.within(soon, "a deleted custom resource was made again", func() error {
		again, err := s.sys.Name(wild)
		if err == nil && again.UID == obj.UID {
			err = errors.New("still the old one")
		}
		return err
	})
	whole("a deleted custom resource")
	if got := s.reaches(s.pod, s.server, s.name("www"), dns.TypeA); got != addr {
		s.Errorf("%s is now %s, want %s", s.name("www"), got, addr)
	}
}

// namespaceLeaves deletes a namespace with everything in it.
func namespaceLeaves(s *story) {
	s.sys.Authority.Fresh(s.ns+".test", time.Minute)
	s.firewall()
	s.reaches(s.pod, s.server, s.name("www"), dns.TypeA)
	ctx := s.Context()
	for _, obj := range []client.Object{
		&apiv1.EgressFirewall{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "default"}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "web"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.ns}},
	} {
		if err := s.sys.Admin.Delete(ctx, obj, client.GracePeriodSeconds(0)); err != nil {
			s.Fatal(err)
		}
	}
	if err := errors.Join(s.sys.Nodes[0].Remove(s.pod), s.sys.FinalizeNamespace(s.ns), s.sys.Settled(soon)); err != nil {
		s.Fatal(err)
	}
	if _, err := s.sys.Name("*." + s.ns + ".test"); !apierrors.IsNotFound(err) {
		s.Errorf("its name: %v, want that there is none", err)
	}
	if out, err := s.sys.Nodes[0].NBCtl("--bare", "--columns=name", "find", "Port_Group",
		`external_ids:"k8s.ovn.org/name"=`+s.ns); err != nil || out != "" {
		s.Errorf("its port group: %q, %v, want none", out, err)
	}
}
