package fetch

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/watch"
	restwatch "k8s.io/client-go/rest/watch"

	"github.com/nameplane/nameplane/kubernetes/api/v1alpha1"
)

// full returns a wildcard with the given number of names.
func full(names int) *v1alpha1.DNSNameResolver {
	at := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Local())
	out := &v1alpha1.DNSNameResolver{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(),
		Kind: "DNSNameResolver"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "egress", Name: "dns-1", UID: "u", ResourceVersion: "7",
			CreationTimestamp: at,
			Labels:            map[string]string{"a": "b"}, Annotations: map[string]string{"ä \" \\ <": "\u2028"}},
		Spec: v1alpha1.DNSNameResolverSpec{Name: "*.example.com."}}
	for i := range names {
		n := v1alpha1.DNSNameResolverResolvedName{DNSName: v1alpha1.DNSName(fmt.Sprintf("n%d.example.com.", i)),
			ResolutionFailures: int32(i % 3),
			Conditions: []metav1.Condition{{Type: "Degraded", Status: metav1.ConditionFalse, Reason: "NOERROR",
				Message: "No Error", LastTransitionTime: at}}}
		for k := range 2 {
			n.ResolvedAddresses = append(n.ResolvedAddresses,
				v1alpha1.DNSNameResolverResolvedAddress{IP: fmt.Sprintf("198.51.%d.%d", i/100, 2*(i%100)+k), TTLSeconds: 30,
					LastLookupTime: &at})
		}
		out.Status.ResolvedNames = append(out.Status.ResolvedNames, n)
	}
	return out
}

func event(t testing.TB, kind watch.EventType, obj any) string {
	raw, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(metav1.WatchEvent{Type: string(kind), Object: runtime.RawExtension{Raw: raw}})
	if err != nil {
		t.Fatal(err)
	}
	return string(out) + "\n"
}

// usual returns the decoder of client-go.
func usual(t testing.TB, text string) *restwatch.Decoder {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	metav1.AddToGroupVersion(scheme, v1alpha1.GroupVersion)
	codecs := serializer.NewCodecFactory(scheme)
	info, _ := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), runtime.ContentTypeJSON)
	frames := info.StreamSerializer.Framer.NewFrameReader(body(text))
	return restwatch.NewDecoder(streaming.NewDecoder(frames, info.StreamSerializer.Serializer),
		codecs.UniversalDeserializer())
}

func body(text string) io.ReadCloser { return io.NopCloser(strings.NewReader(text)) }

// TestAsUsual checks that every event is decoded as by client-go, and that a stream ends with the same error.
func TestAsUsual(t *testing.T) {
	odd := full(1)
	odd.Status.ResolvedNames[0].ResolvedAddresses[0].LastLookupTime = nil
	odd.CreationTimestamp = metav1.Time{}
	whole := event(t, watch.Added, full(3)) + event(t, watch.Modified, full(300)) + event(t, watch.Deleted, odd) +
		event(t, watch.Bookmark, &v1alpha1.DNSNameResolver{TypeMeta: odd.TypeMeta,
			ObjectMeta: metav1.ObjectMeta{ResourceVersion: "9",
				Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}}) +
		event(t, watch.Error, &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure",
			Code: 410, Reason: metav1.StatusReasonExpired, Message: "too old"})
	for name, text := range map[string]string{
		"whole":    whole,
		"cut":      whole[:len(whole)/2],
		"garbage":  event(t, watch.Added, full(1)) + "{]\n",
		"another":  event(t, "RENAMED", full(1)),
		"a number": `{"type":"ADDED","object":` + strings.Replace(object(t), `"2026-01-02T03:04:05Z"`, "7", 1) + "}\n",
		"no time":  `{"type":"ADDED","object":` + strings.Replace(object(t), `"2026-01-02T03:04:05Z"`, `"noon"`, 1) + "}\n",
		"a part":   `{"type":"ADDED","object":` + strings.Replace(object(t), `05Z"`, `05.25+01:00"`, 1) + "}\n",
		"unknown": `{"object":` + strings.Replace(object(t), `"spec":{`, `"later":[{"a":null}],"spec":{"more":{},`, 1) +
			`,"type":"ADDED"}` + "\n",
		"null": `{"type":"ADDED","object":` + strings.Replace(object(t), `"2026-01-02T03:04:05Z"`, "null", 1) + "}\n",
		"twice": `{"type":"ADDED","object":` + strings.Replace(object(t), `"spec":{`, `"spec":{"name":"a.example.",`, 1) +
			"}\n",
		"empty": "",
	} {
		ours, theirs := newEvents(body(text)), usual(t, text)
		for n := 0; ; n++ {
			kind, obj, err := ours.Decode()
			wantKind, want, wantErr := theirs.Decode()
			if (err == nil) != (wantErr == nil) || (err == io.EOF) != (wantErr == io.EOF) ||
				(err == io.ErrUnexpectedEOF) != (wantErr == io.ErrUnexpectedEOF) {
				t.Fatalf("%s, event %d: %v, client-go says %v", name, n, err, wantErr)
			}
			if err != nil {
				break
			}
			if kind != wantKind {
				t.Errorf("%s, event %d is %s, to client-go %s", name, n, kind, wantKind)
			}
			if d := cmp.Diff(want, obj); d != "" {
				t.Errorf("%s, event %d (-client-go +ours):\n%s", name, n, d)
			}
		}
	}
}

func object(t *testing.T) string {
	raw, err := json.Marshal(full(1))
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(raw), full(0).CreationTimestamp.Format(time.RFC3339), "2026-01-02T03:04:05Z")
}

func BenchmarkEvent(b *testing.B) {
	text := event(b, watch.Modified, full(500))
	b.Run("here", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		b.ReportAllocs()
		for b.Loop() {
			if _, _, err := newEvents(body(text)).Decode(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("client-go", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		b.ReportAllocs()
		for b.Loop() {
			if _, _, err := usual(b, text).Decode(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
