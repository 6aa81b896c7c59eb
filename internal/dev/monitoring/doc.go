// Package monitoring has the tests of deploy/prometheus and deploy/grafana: promtool checks them,
// a Prometheus scrapes an instance and tells of a fault, and what they ask for exists. There is
// nothing in it for others to use.
package monitoring
