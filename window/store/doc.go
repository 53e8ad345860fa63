// Package store keeps what must survive a crash: input offsets, dead letters,
// raised alerts and the outbox of their deliveries. One Commit is one atomic
// step. It knows neither alerts nor the engine: both are bytes here.
//
//	loop ── Commit{offsets, dead letters, alerts} ─▶ Badger ─▶ Undelivered ── sender
//	                                                    ▲                        │
//	                                                    └────── Delivered ◀──────┘
//
// The offset moves only together with, or after, all that the input before it
// caused. After a crash the input is read again from the stored offset and
// causes the same alerts and dead letters; those that the store has already are
// recognised, by their ID and by position and content. So nothing is lost,
// nothing is kept twice, and a delivery is repeated at worst.
//
// # Keys
//
// One Badger database; the first byte of a key says what it is. Numbers in keys
// and fixed numbers in values are big-endian, so that keys sort as numbers do.
// A name is its length as a varint and its bytes.
//
//	m schema                            ─▶ u16 version of this layout
//	m state                             ─▶ u64 next dead letter ID
//	                                       u64 oldest dead letter ID
//	                                       u64 bytes of dead letters
//	                                       u64 dead letters dropped
//	                                       u64 next alert number
//	o name(source) u32 partition        ─▶ u64 next offset
//	d u64 ID                            ─▶ dead letter, see letter.go
//	i 16 bytes of hash of a dead letter ─▶ u64 its ID
//	a alert ID                          ─▶ u64 number, then the body
//	x name(receiver) u64 alert number   ─▶ alert ID: still to be delivered
//
// Dead letters have dense IDs between oldest and next: the oldest is found and
// dropped without a scan over what was deleted before. Alert numbers are the
// order of first commit, so an outbox is read oldest first.
//
// # Commits too large for one transaction
//
// A Badger transaction holds at most 15% of a memtable: here some 600 kB and 6,500
// entries. Nearly every Commit fits and is one transaction. A larger one is
// split: dead letters and alerts first, each in some transaction together with
// its index and outbox entries and the state, the offsets last. A crash between
// leaves some of the dead letters and alerts, but not the offset; what is read
// again finds them there. The promise of the first section holds in both cases.
//
// # Durability
//
// A Commit that returned survives the death of the process: Badger writes through a
// shared memory map, which belongs to the operating system by then. Only with
// SyncWrites does it survive the loss of power, at about a millisecond per Commit.
//
// # Non-obvious
//
//   - A store has one user at a time, readers included: Badger cannot be opened to
//     read while another process writes. Open then fails with ErrLocked, whose
//     message says who holds it.
//   - The outbox of a receiver that is no longer configured is kept: it may
//     come back, and a program that opens the store to look at it configures none.
//   - Badger deletes by writing tombstones; the state's counters keep the hot
//     paths away from them.
//   - Large values live in Badger's value log, where deleting frees nothing until
//     Maintain.
package store
