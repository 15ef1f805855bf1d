// Command external-dns applies one plan of external-dns with its provider for PowerDNS, and prints the records that
// the provider then finds. The plan is JSON on standard input. external-dns itself needs a Kubernetes cluster.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"sigs.k8s.io/external-dns/endpoint"
	"sigs.k8s.io/external-dns/pkg/apis/externaldns"
	"sigs.k8s.io/external-dns/plan"
	"sigs.k8s.io/external-dns/provider/pdns"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run takes the address and the key from the environment, as external-dns does. It reads the records back through the
// same provider, so that a test sees what external-dns would see in its next loop.
func run(ctx context.Context) error {
	cfg := &externaldns.Config{PDNSServer: os.Getenv("PDNS_SERVER"), PDNSServerID: "localhost",
		PDNSAPIKey: os.Getenv("PDNS_API_KEY")}
	p, err := pdns.New(ctx, cfg, endpoint.NewDomainFilter([]string{os.Getenv("DOMAIN")}))
	if err != nil {
		return err
	}
	var changes plan.Changes
	if err := json.NewDecoder(os.Stdin).Decode(&changes); err != nil {
		return err
	}
	if err := p.ApplyChanges(ctx, &changes); err != nil {
		return err
	}
	records, err := p.Records(ctx)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(records)
}
