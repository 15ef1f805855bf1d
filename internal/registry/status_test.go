package registry_test

import (
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/registry"
)

func TestStatusOf(t *testing.T) {
	tests := []struct {
		word, code string
		urgent     bool
	}{
		{"client transfer prohibited", "clientTransferProhibited", false},
		{"clientTransferProhibited", "clientTransferProhibited", false},
		{"clientTransferProhibited https://icann.org/epp#clientTransferProhibited", "clientTransferProhibited", false},
		{"clienttransferprohibited (https://www.icann.org/epp#clientTransferProhibited)", "clientTransferProhibited", false},
		{"CLIENT-HOLD", "clientHold", true},
		{"server hold", "serverHold", true},
		{"active", "ok", false},
		{"associated", "linked", false},
		{"Registered until expiry date.", "ok", false},
		{"on-hold", "serverHold", true},
		{"auto renew period", "autoRenewPeriod", true},
		{"redemption period", "redemptionPeriod", true},
		{"pending delete", "pendingDelete", true},
		{"pending transfer", "pendingTransfer", true},
		{"inactive", "inactive", true},
		{"add period", "addPeriod", false},
		{"NOT DELEGATED", "inactive", true},
		{"Quarantined", "Quarantined", false},
		{"free\x1b[31m", "free [31m", false},
		{"http", "http", false},
		{"", "", false},
	}
	for _, tt := range tests {
		got := registry.StatusOf(tt.word)
		if got.Code != tt.code || got.Urgent != tt.urgent {
			t.Errorf("StatusOf(%q) = %q, urgent %v, want %q, %v", tt.word, got.Code, got.Urgent, tt.code, tt.urgent)
		}
		if !strings.HasSuffix(got.Text, ".") {
			t.Errorf("StatusOf(%q).Text = %q is not a sentence", tt.word, got.Text)
		}
	}
}

// TestStatusTexts has the complete lists of RFC 8056 §2 and RFC 9083 §10.2.2. All must have an explanation.
func TestStatusTexts(t *testing.T) {
	words := []string{
		"addPeriod", "autoRenewPeriod", "clientDeleteProhibited", "clientHold", "clientRenewProhibited",
		"clientTransferProhibited", "clientUpdateProhibited", "inactive", "linked", "ok", "pendingCreate",
		"pendingDelete", "pendingRenew", "pendingRestore", "pendingTransfer", "pendingUpdate",
		"redemptionPeriod", "renewPeriod", "serverDeleteProhibited", "serverRenewProhibited",
		"serverTransferProhibited", "serverUpdateProhibited", "serverHold", "transferPeriod",
		"validated", "renew prohibited", "update prohibited", "transfer prohibited", "delete prohibited", "proxy", "private",
		"removed", "obscured", "associated", "active", "locked", "pending create", "pending renew", "pending transfer",
		"pending update", "pending delete",
	}
	for _, w := range words {
		if s := registry.StatusOf(w); strings.Contains(s.Text, "its own status") {
			t.Errorf("%q is not explained: %q", w, s.Text)
		}
	}
}
