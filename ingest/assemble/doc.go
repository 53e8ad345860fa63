// Package assemble makes records of events: of a transaction that is told as it
// happens, by a message for its begin, one for each operation, and one for its end.
// It is pure: no clock, goroutine or I/O; the same events give the same records and losses.
//
//	begin s/7 ─▶ op 0 ─▶ op 1 ─▶ commit ─▶ one record
//	     └─ open: in memory, at most Options say ─┘
//
//	a := assemble.New(assemble.Options{MaxTransaction: int64(time.Minute)})
//	fate, err := a.Add(offset, now, &event) // err: a dead letter
//	for t, offset := a.Next(); t != nil; t, offset = a.Next() { … }
//
// An Assembler is for one partition of the input, whose events it is given in their
// order. A session has one open transaction at most, as it does one thing at a time.
//
// # What is told and what is lost
//
// Every operation has its number and every end says how many there were. So whatever happens
// to events on their way (lost, doubled, in another order, sent to another partition), it is known
// whether a transaction is complete. One that is not becomes a record all the same, with what is
// certain, and a Loss. What is certain are the operations before the first one missing, and of those behind it
// what was written: a read behind a hole may have been of what the transaction itself had
// written there, and would look like an anomaly. So would an append behind a hole in which
// another element was appended: to who reads the list, that one stands between two that nothing
// should stand between. Left out are also writes that the transaction
// overwrote itself, as one of the missing may have written the same again, and its reads of its
// own writes. To leave out a read or a write proves nothing that did not happen, as long as the
// history is known to have a loss.
//
//	what happens                              what becomes of it
//	an event again, by offset or content      Doubled: dropped
//	the same event with other content         refused, Contradiction; of an operation, neither is believed
//	an operation out of order                 put in its place
//	an end, and operations are missing        a record of that outcome with what is certain; Loss Incomplete
//	an event without begin, or in another     refused, NotOpen
//	partition than its begin
//	a begin while another is open             the other is given up; Loss Superseded
//	no end within MaxTransaction              given up; Loss Silent
//	more open, operations or bytes than       given up, the oldest first; Loss OpenLimit, OpsLimited, BytesLimit
//	Options say
//	the end of the input                      given up; Loss EndOfInput
//	an event of what was given up, or of      Late: dropped, as the loss has been told
//	an incomplete one
//
// A transaction that is given up becomes a record of unknown outcome: it may have
// taken effect, then or later. A refused event changes nothing else. Who
// refuses it has a dead letter, which is a loss by itself.
//
// # Time
//
// A transaction is given up when MaxTransaction has passed since its begin by the clock that comes in
// as a number: the broker's time of messages, where there is one, else the times that events tell. A clock
// that jumps ahead gives up what is open, and is believed no further: when it is back, what is
// open then counts from there.
//
// # Restart
//
// State is a few bytes for each open transaction: where it began, not what it holds. After a
// restart, Restore it and Add the events from Oldest on again. Those before the place where State was
// taken only bring back the open transactions (Replayed), whatever had been given up meanwhile and why.
// What can't be read again is told as a Loss, Unreadable.
//
// Files: event.go what comes in, assemble.go the state machine, open.go a transaction and its record,
// state.go restarts.
package assemble
