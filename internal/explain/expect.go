package explain

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nameplane/nameplane/internal/rr"
)

// ParseExpect reads "A=192.0.2.1". The data becomes what a server's is written as, so that the two can be compared: an address in its
// shortest form, names in small letters and with their last dot, and text in quotes.
func ParseExpect(text string) (Set, error) {
	word, data, ok := strings.Cut(text, "=")
	if !ok {
		return Set{}, errors.New("must be TYPE=DATA")
	}
	var set Set
	if err := set.Type.UnmarshalText([]byte(word)); err != nil {
		return Set{}, err
	}
	if !set.Type.IsData() {
		return Set{}, fmt.Errorf("%s is no type of records", set.Type)
	}
	if set.Type == rr.TypeTXT && data != "" && !strings.Contains(data, `"`) {
		data = quoted(data)
	}
	parsed, err := rr.ParseData(set.Type, data)
	if err != nil {
		return Set{}, err
	}
	set.Data = []string{rr.DataText(set.Type, rr.DataKey(set.Type, parsed))}
	return set, nil
}

// quoted is text as the strings of a TXT record, none of which can be longer than 255 octets.
func quoted(text string) string {
	const most = 255
	var out []string
	for ; len(text) > most; text = text[most:] {
		out = append(out, `"`+text[:most]+`"`)
	}
	return strings.Join(append(out, `"`+text+`"`), " ")
}
