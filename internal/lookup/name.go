package lookup

// name is the name being looked for, and where its octets stand in the message, so that records can point to it: the
// first head octets from pos on, the others from tail on.
type name struct {
	wire   []byte // lower case, root label included
	starts [128]uint8
	count  int // labels, root not counted
	pos    int
	head   int
	tail   int
}

// set makes wire the name, of which all octets stand at pos of the message.
func (n *name) set(wire []byte, pos int) {
	n.wire, n.pos, n.head, n.count = wire, pos, len(wire), 0
	for i := 0; wire[i] != 0; i += 1 + int(wire[i]) {
		n.starts[n.count] = uint8(i)
		n.count++
	}
}

// split says that the octets from head on stand elsewhere in the message.
func (n *name) split(head, tail int) { n.head, n.tail = head, tail }

// start is the octet at which label i begins; label count is the root.
func (n *name) start(i int) int {
	if i == n.count {
		return len(n.wire) - 1
	}
	return int(n.starts[i])
}

// at is where in the message the part of the name from an octet on stands. The root has no place of its own in a name
// that was split, but no pointer to the root is ever needed there.
func (n *name) at(off int) int {
	if off < n.head {
		return n.pos + off
	}
	return n.tail + off - n.head
}
