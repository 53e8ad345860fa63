// Package store keeps what must survive a crash: input offsets, the journal of the
// input, checkpoints of histories and what they have spilled, dead letters, raised
// alerts and the outbox of their deliveries. One Commit is one atomic step. It knows
// neither alerts nor the engine nor records: all are bytes here.
//
//	ingest ── Commit{offsets, journal entry, dead letters} ─▶ ┌───────┐ ─▶ Undelivered ── sender
//	worker ── Commit{alerts, checkpoint} ───────────────────▶ │ store │        │
//	       ── Spill, Spilled ──────────────────────────────── └───────┘ ◀─ Delivered
//
// The offset moves only together with, or after, all that the input before it
// caused. After a crash the input is read again from the stored offset and
// causes the same alerts and dead letters; those that the store has already are
// recognised, by their ID and by position and content. So nothing is lost,
// nothing is kept twice, and a delivery is repeated at worst.
//
// # Where things are
//
//	MANIFEST *.sst *.mem …     a Badger database of small values
//	journal/<id>.log           the journal, see journal.go
//	large/<id>                 a value of more than 80 kB: a checkpoint, a large alert
//	COMMITTED                  how many transactions were committed, see whole.go
//	PLACE                      which directory this is, so that Verify can tell it from a copy
//
// The files beside the database are written, and with SyncWrites synced, before the
// transaction that makes them count, and removed after the one that ends that. What
// a crash leaves in between does not count, and Open removes it. So a Commit is as
// atomic as one Badger transaction, whatever its size.
//
// # Keys
//
// The first byte of a key says what it is. Numbers are big-endian, so that keys sort
// as numbers do. A name is its length as a varint and its bytes.
//
//	m schema                            ─▶ u16 version of this layout
//	m state                             ─▶ counters and the digest of all others, see state
//	m rest                              ─▶ what the last Commit has left to do, see rest.go
//	o name(source) u32 partition        ─▶ u64 next offset
//	s u64 file of the journal           ─▶ what of it is committed, see logFile
//	c history                           ─▶ its checkpoint, or what a caller keeps under a name that no history has
//	g history                           ─▶ u64 number of its checkpoints so far
//	f name(history) key                 ─▶ a spilled value
//	u name(history) u64 generation key  ─▶ what it was at the last checkpoint, see spill.go
//	z history                           ─▶ empty: what it has spilled is to be removed
//	d u64 ID                            ─▶ dead letter, see letter.go
//	i 16 bytes of hash of a dead letter ─▶ u64 its ID
//	a alert ID                          ─▶ u64 number, then the body
//	t u64 alert number                  ─▶ i64 when it was first stored, alert ID
//	p u64 alert number                  ─▶ u64 how much news of it is pending, alert ID
//	l                                   ─▶ the state of what decides which notices there are
//	n u64 notice number                 ─▶ its body
//	k notice ID                         ─▶ u64 number, u64 how many receivers are still to be told
//	x name(receiver) u64 notice number  ─▶ notice ID: still to be delivered
//
// A value is stored as
//
//	value, 'v', u64 checksum of key and what precedes                     or
//	u64 file, u64 size, u64 checksum of the content, 'l', u64 checksum    if it has a file
//
// Dead letters have dense IDs between oldest and next: the oldest is found and
// dropped without a scan over what was deleted before. Numbers of alerts and of notices are the
// order of first commit, so an outbox is read oldest first. Nothing that happens
// often looks for the first key of a range whose beginning is deleted again and
// again.
//
// # Commits too large for one transaction
//
// A Badger transaction holds at most 15% of a memtable: here some 600 kB and 6,500
// entries, where a large value counts 128 bytes and a journal entry nothing. Nearly
// every Commit fits and is one transaction. Dead letters that do not fit into one, thousands of them, are split: each
// is in some transaction together with its index and the state; all else is in the last one. A crash between leaves
// some of the dead letters, but not the offset; what is read again finds them there.
//
// All else must hold together, however much it is: thousands of histories begin with one batch, or go when the store is
// used for another input; alerts wait for room on the disk, and how far they were counted is stored with them. If it
// does not fit, the transaction that commits has it written down, and what is written down is done in others (rest.go).
// A crash between has Open do that; what fails of it, the Commit has succeeded, and the next writer does it first. Whoever
// reads meanwhile may find a part of it; the monitor reads checkpoints and offsets only as it begins.
//
// # Durability
//
// A Commit that returned survives the death of the process: Badger writes through a
// shared memory map, which belongs to the operating system by then. Only with
// SyncWrites does it survive the loss of power. Without, what is left after that is a
// prefix of the commits, which Open logs, or damage that it recognises.
//
// # Damage
//
// Every value, journal entry and large file has a checksum, which readers hold it to.
// What Badger loses without a word is found by a digest of all records, and by how many
// transactions there were (whole.go): Open compares them, and Verify, which opens a copy of the
// database and reads the journal and the large files as well.
//
// # A full disk
//
// Badger writes through memory maps, and one that the disk has no room for ends the
// process with a signal. So no Commit is tried that would leave less than
// Options.Reserve free. It lets go of all evidence first, and then fails with ErrFull;
// reading goes on, and the next Commit looks again. The reserve is what tables that
// are being merged need.
//
// # Non-obvious
//
//   - A store has one user at a time, readers included: Badger cannot be opened to
//     read while another process writes. Open then fails with ErrLocked, whose
//     message says who holds it.
//   - The outbox of a receiver that is no longer configured is kept: it may
//     come back, and a program that opens the store to look at it configures none.
//   - A reader sees the database as it was when it began, but the files as they are:
//     a large value that was replaced meanwhile is read as it is now.
//   - Files of the journal are never written again below their committed end: cutting
//     the journal back begins a new file.
//   - Badger leaves a write-ahead log of no bytes if it is killed at the wrong moment, and
//     can't open it. Open removes it.
package store
