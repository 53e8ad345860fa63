// Package veil keeps customers' data out of alerts. Keys and values are replaced
// before an alert has any words, so that none of its words, lines, pictures and
// records can hold one:
//
//	full   acct:1 = "Ada Lovelace"              as it was recorded
//	hash   key-9f2c61d07ab43e58 = "value-…"     a keyed hash: equal stays equal, in all alerts
//	none   k1 = "v1"                            a pseudonym: equal stays equal, in this alert
//
// # What stays
//
// What evidence is judged by: which keys and values are equal, and those that mean
// something by themselves: null, the empty list, 0 where keys start as 0, the order and
// the places of a list's elements, and which object a key named "x = v" is part of. So
// veiled evidence is a history like any other, of which `monitor check` finds the same. It is
// not judged by the order or the length of anything, nor whether it is a number.
//
// What is no data: transactions' and sessions' ids, databases, times, outcomes, and
// how many operations there were.
//
// Predicates are opaque: where a predicate is evaluated, veiled evidence can't be.
//
// # Secrecy
//
// A hash without a secret hides nothing that can be guessed, and balances can. So
// hashes are keyed (HMAC-SHA-256, the first 64 bits) with a salt that never leaves the
// machine; who has the salt can test guesses. Keys and values are hashed apart, so that
// a value that is also a key can't be recognised. Of what equals what hashes tell as
// much as the data itself, in all alerts together; pseudonyms tell it of one alert.
package veil
