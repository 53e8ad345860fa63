// Package order puts the transactions of one history into one order, whatever
// the interleaving in which the partitions of the input were read, and says how
// far the stream is complete: the watermark. It is pure: no clock, goroutine or
// I/O. The time of day comes in as a number. It works on heads of records and on
// numbers (refs) by which its caller knows them: 64 bytes for one that waits.
//
//	partition 0  ──t──t──t──▶ ┐            sessions            heads by end
//	partition 1  ──t──t──────▶ ├─ Add ─▶  a: t─t─t  ─┐
//	partition 2  ──t──t──t──▶ ┘          b: t        ├─▶  a b c  ─▶ Next
//	                                     c: t─t     ─┘     while end < mark
//
// A session is a queue in session order. Only its first record competes with
// those of other sessions, so session order cannot be violated, and every step
// costs O(log sessions). A record that follows one with a later end (a clock
// stepped back) waits for it and leaves under its end.
//
// Use:
//
//	switch o.Add(partition, &head, ref, arrival) {
//	case order.Taken, order.Late: …          // it will come out of Next
//	case order.Stale: …                      // what it wrote is written by nobody who is seen
//	}
//	for r, ok := o.Next(); ok; r, ok = o.Next() {
//		if r.Tick {
//			engine.Tick(r.TickAt)    // twice, if r.Silent
//		}
//		if r.Loses() { … }               // so may be what others wrote
//		t := unpack(r.Ref)               // without what must not be believed of it: TimesDropped, Detached
//		engine.Step(t, r.Key)
//	}
//	if at, due := o.Tick(); due {
//		engine.Tick(at)
//	}
//
// Files: order.go is Add and Next; progress.go the partitions and the watermark; session.go
// and heap.go what waits; mark.go when it leaves; trial.go what is too far ahead; again.go and memory.go what came
// before; forget.go how sessions are forgotten; tick.go, patience.go, sample.go, snapshot.go what they say.
//
// # The watermark
//
// The watermark is the least end time that may still arrive. All that ends
// before it has been handed out by the time Next returns false. It is the least
// of the partitions' bounds, and never falls.
//
// Let delay = Lateness + MaxSkew. A producer sends a record at most Lateness
// after its transaction ended, and at most MaxSkew lies between any two clocks.
// So once a record that ended at e is in a log, whatever is appended to any log
// afterwards ended at e-delay or later. From this a partition's bound is
//
//   - (greatest end seen in it) - delay, while there is more to read, and
//   - (the stream's time when it was seen to be read to its end) - delay, as
//     CaughtUp tells. The stream's time is the greatest end seen in any partition,
//     plus what has passed since by the clock of the caller. So a partition
//     with little traffic holds nothing back, and a stream that falls silent is
//     handed out completely after delay.
//
// Nothing compares client clocks with the caller's: the latter only measures how
// much time passed. Histories with relative, logical or old times need no
// special treatment. As a second precaution the watermark never passes the
// greatest end seen by more than one nanosecond: silence proves nothing about
// times that the stream has not reached.
//
// # The mark
//
// Records are handed out up to the mark, which is the watermark unless Prompt is set. To be in its place a record
// need not wait for whatever may still arrive, but for as much as others come behind. So a partition's log shows that
// all up to (greatest end seen in it) - wait may leave, and this never falls; wait is twice the most by which records
// ended before others that came in front of them, of late, and delay at most. What is quiet shows nothing, and so do
// records of other histories: there the mark is the watermark, which CaughtUp and Observe move.
//
// What waits for absence are ticks: once a record has left, every partition has reached more than its end, so what
// may still arrive ended at most delay before. That is the time that ticks say.
//
//   - One that came behind more than wait, and in time, is Passed: its place is where its partition was.
//   - Behind a hole in its session nothing leaves before the watermark, so that the order of sessions is what it is
//     without Prompt. A session whose first record has a seq above 0 begins with a hole.
//   - A partition in which a record has no seq waits for the watermark: it is known to be new by its
//     place alone.
//
// # The same for everybody
//
// As long as producers keep to Lateness, the records that come out, their order, their
// flags and the places of ticks are a function of the partitions' logs: the same for
// every interleaving, batch size and time of day, for two monitors, and after a
// Restore. Only when they come out differs. For this
//
//   - a record's place (its key) is found from it, its session and its own partition;
//   - it is Late if its own partition shows that it is: it ended before (greatest end seen
//     there) - delay; or Passed, by wait. Its key is how far its partition was to leave, which no mark
//     has passed. So it is the same even where lateness is broken;
//   - a record behind a hole in its session waits MaxSkew longer, as what fills the hole may
//     have ended so much later by a clock that was then set back;
//   - sessions are forgotten by what was released, never by what waits.
//
// Not the same for everybody is what depends on when something was read:
//
//   - a record later than Lateness in a partition that shows nothing of it, because it has
//     little traffic: it is Late if the partition had been read to its end, and in its place
//     if not;
//   - a record later than Lateness of a session that is being forgotten (MaxSessions): Late, or Stale
//     if it was forgotten before the record was read;
//   - what IdleAfter, MaxBuffered and Sample cause;
//   - how far ticks go while clocks are wrong by more than MaxSkew, or times go faster than the day
//     does (Patience);
//   - an end that is ahead of the time of day but not of its arrival (MaxAhead);
//   - a record that fills a hole in its session after a clock was set back by more than
//     MaxSkew;
//   - for a record of a session without seq whose clock stands still or was set back: whether
//     it is new, once MaxRemembered/2 others have come since;
//   - without times: whether a session that was forgotten is new (see below);
//   - a record that has the ID of another that was released before a snapshot, if Remember was
//     not told.
//
// # Patience
//
// What ended before the watermark has been handed out if clocks are as good as is said. If a
// client's is wrong by more than MaxTransaction the engine would take what it wrote for never written: a
// partition that is ahead has its records wait in the order while others, who read from them, are out and
// due; one that is set back is due long before what it read from is in order. So a tick says a time that is no
// later than what is proved by when records came, too (patience.go): a reader is due once all that came
// within MaxTransaction - Lateness - MaxSkew after it has been read and handed out. What it read
// from, if it came in time, is among that. While clocks are good, this holds back no tick. A tick that was
// held back is made good by a later one, which Tick gives also while nothing comes.
//
// When a record came is what its broker says; where there is none, its own end; but not before
// the last CaughtUp of its partition, nor after it was read (Reading). What is said to have come more than
// Lateness and MaxSkew before that CaughtUp counts as coming when it was read. So what is wrong and can't be told are
// clocks of clients, and of brokers that have theirs, in what has piled up and is read before the first CaughtUp; and
// a writer that took nearly MaxTransaction.
//
// # What goes wrong, and what then happens
//
// None of this may lead to a false alarm. A loss is what is flagged so: what was, or will be,
// concluded from the absence of a write may then be wrong.
//
//	a session goes silent              holds nothing back; what is missing when it      no loss, unless Gap
//	                                   comes back is a Gap
//	a partition stalls                 holds all back, until IdleAfter; then it is      no loss
//	                                   passed over, and holds back ticks only; what
//	                                   it still had is Late and Passed
//	… for longer                       is given up when it was silent, and the others   loss: Missed counts it, and
//	                                   went on, for MaxTransaction more                 its records are Late
//	all partitions stall               no time passes, all waits: what is read is away   no loss
//	one comes back, or all             nothing is handed out while those who write may       no loss
//	                                   not have caught up: Returned
//	a hole in a session                Gap                                              loss
//	a session's first records are      with Whole, Gap if the first that comes has a    loss
//	missing                            seq of 2 or more; it may also be one that was
//	                                   forgotten: Forgotten
//	a record comes behind more than    with Prompt Passed: placed by its partition's time    no loss
//	others, and in time
//	a record is late                   placed by its partition's time, times dropped    loss: Late
//	                                   (Release.TimesDropped says for whom); Detached
//	                                   if its session has gone on
//	one client's clock is ahead by     placed where it arrived, times dropped; where     no loss
//	MaxAhead or more                   no broker says when that was, if those behind
//	                                   it are not as far (trial.go)
//	an end is after 2116               the same                                         no loss
//	ahead by less                      believed: its partition's neighbours are Late    loss
//	                                   while it lasts
//	numbers run backwards, or start    who came after a greater number, and began after     no loss
//	again                              that had ended, is Detached: Misnumbered
//	… and so does the input, where     who ended before one in front of it began is          no loss
//	no broker says when it came        Misnumbered, and its times dropped
//	one client's clock is set back     with seqs and a broker's times: placed at its partition's time,       no loss
//	                                   times dropped, until the clock has caught up
//	                                   without: in its place if by less than delay,     loss: Stale
//	                                   else dropped
//	all clients' are set back          the same; they wait until the clocks have        loss for new sessions: Late
//	                                   caught up, the partition is read to its end or
//	                                   MaxBuffered is reached. New sessions are Late
//	all clients' go ahead              less than MaxAhead: the stream jumps. More: as    no loss
//	                                   one, until their arrivals are as far
//	a whole partition's clocks are     believed: what is ahead waits, and so do all     no loss
//	ahead or set back                  others for what is set back; ticks say less
//	                                   (Patience). MaxBuffered bounds it
//	a transaction lasts longer than    in its place by its end: Overlong                loss
//	MaxTransaction
//	records without times in between   placed where they arrived: at the partition's    no loss
//	                                   greatest end, plus what has passed since by the
//	                                   broker's clock
//	a record comes again               Duplicate if its ID is remembered                no loss
//	                                   else, if it can't be shown to be new, Stale      loss
//	sessions come and go               MaxSessions bounds what is remembered; one that  loss: Forgotten
//	                                   may be a forgotten one going on behind a hole
//	                                   is Forgotten
//	a session is not in the sample     LeftOut; a Gap with Sampled when it comes back   loss
//	the buffer is full                 the first in order leave early, and what comes   loss: Missed counts it
//	                                   behind them is Late
//
// # What came before
//
// A record that comes again, and is taken for another one, writes the same value twice:
// a false alarm. So a record is only taken if it is shown to be new:
//
//   - by its seq: greater than all of its session, or a hole among the last 64;
//   - by its end: later than all of its session (if it has no seq), or than all that was
//     forgotten of forgotten sessions;
//   - by not being among the remembered IDs, if all that ended when it did are either
//     remembered or would have had to come before the watermark.
//
// A record that keeps to Lateness with a clock that goes on always is. What is not shown to
// be new is Duplicate or Contradiction if its ID is remembered, and otherwise Stale. A session's name
// must not be used again with seqs that begin anew: ids would be equal too.
//
// Two assumptions remain. A record without times of a forgotten session is taken for new if that
// session was forgotten longer than MaxTransaction and delay before. And of records with neither seq nor
// times only the ID tells: one that comes again after more than Bare others of them (32,768 if that is less) is taken
// for new.
//
// # IdleAfter
//
// A partition that gives neither records nor CaughtUp for IdleAfter (its broker is away, or its reader stuck), while
// others do, stops holding the watermark back. While nothing is heard of any, and nothing is read that is no record, no
// time passes (advance): what is read is away, and what waits goes on waiting. To be passed over loses nothing: ticks
// go on waiting for it (Patience), so nothing is concluded from the absence of what it has. When it comes back, what
// ended before the watermark is Late, behind its place, but Passed, which is no loss. Only one that is silent for
// MaxTransaction more, while the stream goes on for as long, is given up: ticks go on without it, which is a loss
// (Missed, Unread) until it has shown that it is where the watermark is. Where ticks have no patience, that is at once.
//
// A partition that goes away again while it is Returned has shown nothing since it first went: it holds back the watermark
// until it has been idle since that is over, and ticks until it is given up.
//
// Where more than MaxBuffered waits for partitions that are Returned, the watermark goes on as ever, and only ticks
// wait on: what comes behind is Passed, which is no loss, but levels with real time know less.
//
// Time in which nobody read, as the process was stopped, does not count: from one
// Advance to the next at most a second passes, or four ticks.
//
// # When it is full
//
// A partition that lags makes the others wait in memory. With MaxBuffered waiting records Next gives out the
// first in order early, the watermark follows them, and what arrives behind it is Late. That loses completeness, counted
// as Forced.
//
// # Which times are dropped
//
// To forget a time order can hide a violation, but a clock that jumped would invent
// one. So these are flagged TimesDropped and counted: a record that ends before the last
// committed one of its session ended, or starts before that one started (the clock stepped
// back, as incremental has it); one that ends MaxAhead or more after it arrived (the clock
// runs ahead; it must not drag the watermark along), and what comes next of its session until that has started
// later than it ended; a late one; one that started
// after a successor in its session had started that was handed out before it, or is late and started before its
// predecessor had ended (Contradicts). For the last a session with holes keeps the least starts behind the eight
// newest of them; what fills an older one is compared with more than it has to be.
//
// The transactions of a session may overlap: names of sessions are shared by
// connections. One that is released behind an aborted one, or one of unknown outcome,
// with a later end keeps its times, and its end is before its Key: it is Untimely, as
// are those whose times were dropped. The ends of all others never fall.
//
// # Non-obvious
//
//   - CaughtUp must be called in the order in which partitions were read,
//     relative to the Adds of all partitions: it says that at this moment nothing
//     more was there, and "this moment" is measured in the ends seen so far.
//   - Refs must ascend: they stand for the order of arrival, in a snapshot too.
//   - Add never moves the watermark. It moves in Next, so after Next returned false,
//     Watermark is consistent with what was handed out.
//   - A session belongs in one partition. One that is spread over several is
//     ordered by seq; without seq its order is that of the reading.
//   - A record that comes after a successor of its session has left is
//     handed out as a session of its own (Detached): the engine takes the order
//     of Steps for session order, and a false one would be a false alarm.
package order
