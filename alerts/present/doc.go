// Package present draws an alert for a terminal, as `monitor check`, `monitor
// demo` and `monitor alerts show` print it: what broke, the cycle as a picture,
// what the clients saw, what to look at next.
//
//	┌▶ api-1#7
//	│  │ rw acct:1  api-1#7 read acct:1 = 100, the version that api-3#42 overwrote with 80
//	│  ▼
//	│  api-3#42
//	│  │ rw acct:1  api-3#42 read acct:1 = 100, the version that api-1#7 overwrote with 90
//	└──┘
//
// It reads nothing but the alert, so that one from the store of another monitor
// looks the same. Whatever came from the database passes through package text.
// Without Options.Color the output has no escape sequences at all.
package present
