package resolve

import (
	"errors"

	"github.com/miekg/dns"
)

// IsUnreadable reports whether an Exchanger failed because the reply that came is no DNS message.
func IsUnreadable(err error) bool {
	var syntax *dns.Error
	return errors.Is(err, errMalformed) || errors.As(err, &syntax)
}
