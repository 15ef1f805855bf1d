package wire

import "testing"

func TestAppendPadding(t *testing.T) {
	for _, tt := range []struct{ after, limit, want int }{
		{0, 65535, 468}, {0, 468, 468}, {0, 450, 450}, {0, 404, 404}, {0, 403, 400}, {64, 65535, 404}, {65, 65535, 936 - 65},
	} {
		msg := AppendPadding(make([]byte, 400), tt.after, tt.limit)
		if len(msg) != tt.want {
			t.Errorf("before %d bytes and with a limit of %d: %d bytes, want %d", tt.after, tt.limit, len(msg), tt.want)
		}
		if len(msg) > 400 && (msg[401] != OptionPadding || int(msg[402])<<8|int(msg[403]) != len(msg)-404) {
			t.Errorf("the option is %x", msg[400:404])
		}
	}
}
