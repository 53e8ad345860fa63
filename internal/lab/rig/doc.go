// Package rig runs the monitor as the process that it is in production, between a
// broker that is a process of its own and a receiver of alerts, and watches it from
// outside: what benchmarks and the soak test have in common.
//
//	Feed ──▶ Broker ──▶ Monitor ──▶ Receiver
//	         Kafka,     `monitor run`,  HTTP server
//	         kfake      a child         in this process
//	                       │
//	                       └─ Usage (from /proc), Metrics, Ready
//
// Nothing here knows what is measured or tested.
package rig
