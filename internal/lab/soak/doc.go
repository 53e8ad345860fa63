// Package soak runs the monitor for a long time while everything around it goes
// wrong, and compares what it says with what is known to be true.
//
//	endless.Stream ──▶ producer ──▶ broker ──▶ monitor ──▶ receiver
//	 anomalies planted   redelivers,  killed     killed,     counts ids
//	 every so often      loses, has              stalled,
//	                     wrong clocks            its disk full
//
// Which fault strikes when, and the whole input, follow from a seed; how far the monitor
// has come by then does not. Whatever happens, every planted anomaly must be one alert, with one
// id, and there must be no other.
//
// A further fault is a type with the methods of Fault and a line in Faults.
package soak
