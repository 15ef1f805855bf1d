package hostname

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// metrics are the metrics of the controller.
type metrics struct {
	ready  *prometheus.GaugeVec
	expiry *prometheus.GaugeVec
}

func newMetrics() *metrics {
	return &metrics{
		ready: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "nameplane_hostname_ready",
			Help: "1 if the condition of the HostnameReport is True, 0 if it is False; absent while it is Unknown."},
			[]string{"namespace", "hostname", "condition"}),
		expiry: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "nameplane_certificate_expiry_seconds",
			Help: "Unix time at which the first of the certificates of a hostname expires."},
			[]string{"namespace", "hostname"}),
	}
}

func (m *metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.ready, m.expiry}
}

// set sets the metrics of the conditions of a hostname.
func (m *metrics) set(key Key, conditions []metav1.Condition) {
	for _, c := range conditions {
		switch c.Status {
		case metav1.ConditionTrue:
			m.ready.WithLabelValues(key.Namespace, key.Host, c.Type).Set(1)
		case metav1.ConditionFalse:
			m.ready.WithLabelValues(key.Namespace, key.Host, c.Type).Set(0)
		default:
			m.ready.DeleteLabelValues(key.Namespace, key.Host, c.Type)
		}
	}
}

// setExpiry sets when the certificate of a hostname expires. Without a certificate, the time is zero.
func (m *metrics) setExpiry(key Key, expires time.Time) {
	if expires.IsZero() {
		m.expiry.DeleteLabelValues(key.Namespace, key.Host)
	} else {
		m.expiry.WithLabelValues(key.Namespace, key.Host).Set(float64(expires.Unix()))
	}
}

// remove removes the metrics of a hostname.
func (m *metrics) remove(key Key) {
	of := prometheus.Labels{"namespace": key.Namespace, "hostname": key.Host}
	m.ready.DeletePartialMatch(of)
	m.expiry.DeletePartialMatch(of)
}
