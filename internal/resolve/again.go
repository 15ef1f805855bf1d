package resolve

import "context"

type againKey struct{}

// BeforeAgain is ctx for an exchange in which fn is called before a reply that was cut off is asked for again over TCP. The
// exchange fails with the error that fn returns. It is for those who count their queries.
func BeforeAgain(ctx context.Context, fn func(context.Context) error) context.Context {
	return context.WithValue(ctx, againKey{}, fn)
}

// Again is called by Exchangers before they ask again over TCP.
func Again(ctx context.Context) error {
	if fn, ok := ctx.Value(againKey{}).(func(context.Context) error); ok {
		return fn(ctx)
	}
	return nil
}
