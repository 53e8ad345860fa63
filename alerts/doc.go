// Package alerts makes a verdict useful to a person: it names the violation,
// explains it, proves it again from a few records alone, and gives it an id by
// which it is one alert however often it is found.
//
//	verdict.Violation ──▶ name ──▶ evidence ──▶ shrink ──▶ explain ──▶ Alert ──▶ store ──▶ deliver
//	 (transaction numbers)        (records)   (fewer)     (words)     (JSON)
//
// # Packages
//
//   - alerts: Alert, New, the id, the evidence.
//   - alerts/name: what a violation is called and which levels it breaks.
//   - alerts/veil: keys and values as hashes or pseudonyms, before there are words.
//   - alerts/explain: sentences.
//   - alerts/shrink: fewer transactions and operations that prove the same.
//   - alerts/deliver: from the store's outbox to receivers.
//   - alerts/present: an alert in a terminal.
//   - alerts/text: names and values made safe to show.
//
// # Example
//
//	a, err := alerts.New(v, alerts.Context{DB: "orders", Levels: levels, Lookup: records, Judge: judge, Now: now})
//	if err != nil {
//		// A bug of the monitor: log and count it. The alert is complete, with
//		// all the records that belong to it, and is delivered all the same.
//	}
//	commit.Alerts = append(commit.Alerts, store.Alert{ID: a.ID, Body: a.JSON()})
//
// # Non-obvious
//
//   - Level, name, words and id are a function of the evidence: whatever leads to the
//     same evidence is one alert.
//   - The id is made of transaction ids, not of the engine's numbers, and does
//     not depend on where a cycle was entered. A restarted monitor, or a second
//     one on the same topic, makes the same id.
//   - Evidence stands alone. Of a history with complete coverage only a part is
//     shown, and in a part "nobody wrote that" means little: so reads whose
//     writers are not shown are left out before complete coverage is claimed, and
//     partial coverage is claimed where the proof does not need more.
//   - Sequence numbers are left out of evidence: the holes between them would look like
//     gaps in the capture. The order of the lines is the session order.
package alerts
