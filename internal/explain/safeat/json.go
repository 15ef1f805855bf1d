package safeat

import (
	"fmt"
	"strconv"
)

// MarshalText implements encoding.TextMarshaler. It writes the seconds, or nothing if the TTL is unknown.
func (t TTL) MarshalText() ([]byte, error) {
	if !t.known {
		return nil, nil
	}
	return strconv.AppendUint(nil, uint64(t.seconds), 10), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (t *TTL) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*t = TTL{}
		return nil
	}
	s, err := strconv.ParseUint(string(text), 10, 32)
	if err != nil {
		return fmt.Errorf("%q is not a time to live in seconds", text)
	}
	*t = Seconds(uint32(s))
	return nil
}
