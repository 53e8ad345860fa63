// Package kills kills what stands between an application and its alerts, with SIGKILL while all is at work: the
// application, its database, the monitor, the broker, the proxy. Nothing is accused for it.
package kills
