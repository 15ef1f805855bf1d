package wire

import "encoding/binary"

// OptionPadding is the EDNS option that hides the size of a message (RFC 7830).
const OptionPadding = 12

// PaddedSize is the size of which the size of a padded reply is a multiple (RFC 8467 §4.1).
const PaddedSize = 468

const optionHeader = 4

// AppendPadding appends the option that makes the size of a message a multiple of PaddedSize, or limit if that is less.
// after is the number of bytes that will follow. It returns msg if the option does not fit.
func AppendPadding(msg []byte, after, limit int) []byte {
	size := len(msg) + optionHeader + after
	n := min((size+PaddedSize-1)/PaddedSize*PaddedSize, limit) - size
	if n < 0 {
		return msg
	}
	msg = binary.BigEndian.AppendUint16(msg, OptionPadding)
	msg = binary.BigEndian.AppendUint16(msg, uint16(n))
	return append(msg, make([]byte, n)...)
}
