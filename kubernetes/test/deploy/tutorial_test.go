package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rig "github.com/nameplane/nameplane/kubernetes/test/cluster"
)

// notHere are the beginnings of the commands that TestTutorial cannot run: its cluster has no kubelet and no
// controllers. kubernetes/test/egress/system connects from pods.
var notHere = []string{"kubectl -n kube-system rollout status ", "kubectl -n shop exec ", "kubectl delete namespace "}

// wanted is what the output of some commands contains in the end.
var wanted = map[string]string{
	"kubectl -n shop get egressfirewall default -o yaml":     "status: EgressFirewall Rules applied",
	"kubectl -n ovn-kubernetes get dnsnameresolvers -o yaml": "ip: 192.0.2.10",
	"nameplane-egress explain shop api.example.com:443":      "192.0.2.10: Allow",
	"nameplane-egress explain shop 203.0.113.9:443":          "203.0.113.9: Deny",
}

// TestTutorial runs the commands of the tutorial for pods in their order, with kubectl and a real API server. The
// programs run as processes instead of pods, from the step on that waits for the pods.
func TestTutorial(t *testing.T) {
	s := &stage{Cluster: rig.Start(t, rig.Options{}), dir: shortDir(t), upstream: startUpstream(t)}
	s.build(t)
	s.startOVN(t)
	s.prepareTutorial(t)
	ran := 0
	for _, command := range tutorialCommands(t) {
		if cannotRun(command) {
			continue
		}
		ran++
		soon(t, command, func() error {
			out, err := s.shell(command)
			if exit, ok := err.(*exec.ExitError); ok && exit.ExitCode() == 1 && strings.HasPrefix(command, "nameplane-egress ") {
				err = nil // explained, with a warning
			}
			if err != nil || !strings.Contains(out, wanted[command]) {
				return fmt.Errorf("%v: want %q in\n%s", err, wanted[command], out)
			}
			return nil
		})
		if strings.HasSuffix(command, " get pods") {
			s.startTutorialParts(t)
		}
	}
	if ran < 14 {
		t.Errorf("ran only %d commands", ran)
	}
}

func cannotRun(command string) bool {
	for _, prefix := range notHere {
		if strings.HasPrefix(command, prefix) {
			return true
		}
	}
	return false
}

var tutorialBlock = regexp.MustCompile("(?ms)^```(sh|console)\n(.*?)^```$")

// tutorialCommands returns each shell block of the page, and each command of its console blocks.
func tutorialCommands(t *testing.T) (out []string) {
	t.Helper()
	page := string(read(t, root+"/docs/tutorials/one-name-for-a-pod.md"))
	for _, m := range tutorialBlock.FindAllStringSubmatch(page, -1) {
		if m[1] == "sh" {
			out = append(out, m[2])
			continue
		}
		for line := range strings.Lines(m[2]) {
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				out = append(out, strings.TrimSpace(command))
			}
		}
	}
	return out
}

// shell runs a command as an administrator of the cluster, in a folder with the files that a clone has.
func (s *stage) shell(command string) (string, error) {
	cmd := exec.Command("bash", "-eu", "-c", command)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "PATH="+s.dir+":"+os.Getenv("PATH"), "KUBECONFIG="+s.file("admin.conf"),
		"KUBE_EDITOR="+s.file("editor"))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

var directive = regexp.MustCompile(`(?ms)^    ocp_dnsnameresolver \{.*?^    \}\n`)

// prepareTutorial creates what the reader of the tutorial has: a clone, kubectl with its configuration, and a cluster
// whose CoreDNS does not have the plugin yet. The editor adds the directive.
func (s *stage) prepareTutorial(t *testing.T) {
	t.Helper()
	kubectl, err := rig.Tool("kubectl")
	if err != nil {
		t.Fatal(err)
	}
	deploy, err := filepath.Abs(root + "/deploy")
	if err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"deploy": deploy, "kubectl": kubectl, "egress-tls": "pod-tutorial"} {
		if err := os.Symlink(target, s.file(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Kubeconfig(s.Config, s.file("admin.conf")); err != nil {
		t.Fatal(err)
	}
	example := string(read(t, egressDir+"/examples/Corefile"))
	added := directive.FindString(example)
	if added == "" {
		t.Fatal("the example of a Corefile has no directive")
	}
	indented := regexp.MustCompile(`(?m)^`).ReplaceAllString(strings.TrimSuffix(added, "\n"), "    ") + "\n"
	write(t, s.file("directive"), indented, 0o600)
	write(t, s.file("editor"), "#!/bin/sh\nsed -i '/^        forward /e cat "+s.file("directive")+"' \"$1\"\n", 0o700)
	if err := s.ApplyYAML([]byte(kubeadmCoreDNS)); err != nil {
		t.Fatal(err)
	}
	for _, o := range []client.Object{
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "coredns"},
			Data: map[string]string{"Corefile": strings.Replace(example, added, "", 1)}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ovn-kubernetes"}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1",
			Annotations: map[string]string{"k8s.ovn.org/zone-name": "n1"}}},
	} {
		if err := s.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

func write(t *testing.T, file, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// startTutorialParts runs the programs with the arguments of the manifests, and CoreDNS with the edited Corefile.
func (s *stage) startTutorialParts(t *testing.T) {
	t.Helper()
	edited := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: "kube-system", Name: "coredns"}
	if err := s.Client.Get(t.Context(), key, edited); err != nil {
		t.Fatal(err)
	}
	if want := string(read(t, egressDir+"/examples/Corefile")); edited.Data["Corefile"] != want {
		t.Fatalf("the edited Corefile is\n%s\nwant\n%s", edited.Data["Corefile"], want)
	}
	s.startAgent(t)
	s.startCoreDNS(t)
	s.startPart(t, "manager.yaml")
	s.startPart(t, "resolver.yaml", "--server="+s.dns)
}
