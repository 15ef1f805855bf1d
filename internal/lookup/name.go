package lookup

// name is the current name, and the offsets of its bytes in the message, so that records can point to it. The first
// head bytes are at pos, the others at tail.
type name struct {
	wire   []byte // lower case, with the root label
	starts [128]uint8
	count  int // number of labels without the root
	pos    int
	head   int
	tail   int
}

// set replaces the name by wire, all of whose bytes are at offset pos of the message.
func (n *name) set(wire []byte, pos int) {
	n.wire, n.pos, n.head, n.count = wire, pos, len(wire), 0
	for i := 0; wire[i] != 0; i += 1 + int(wire[i]) {
		n.starts[n.count] = uint8(i)
		n.count++
	}
}

// split records that the bytes from head on are at tail of the message.
func (n *name) split(head, tail int) { n.head, n.tail = head, tail }

// start returns the offset of label i. Label count is the root.
func (n *name) start(i int) int {
	if i == n.count {
		return len(n.wire) - 1
	}
	return int(n.starts[i])
}

// at returns the offset in the message of the part of the name that begins at off. The root has no position of its
// own in a name that was split, but no pointer to the root is ever needed there.
func (n *name) at(off int) int {
	if off < n.head {
		return n.pos + off
	}
	return n.tail + off - n.head
}
