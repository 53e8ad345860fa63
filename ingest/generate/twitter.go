package generate

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/isowatch/isowatch/ingest/record"
)

// usersMax is how many users C-Twitter has at most.
const usersMax = 1 << 20

// C-Twitter's numbers: how many of those that a user follows are on a timeline, and how
// many tweets, besides the latest, are shown.
const (
	timelineMax = 20
	tweetsShown = 10
)

// lookMax is how many operations a transaction that looks has at most.
const lookMax = 1 + 2*timelineMax

// twitter is the state of C-Twitter, the workload that Cobra has of the name
// (github.com/DBCobra/CobraBench, bench/twitter) and AWDIT uses (5.1). Of its keys
//
//	last:U         the number of user U's last tweet
//	follows:U      whom U follows, as one value
//	tweet:N        the N-th tweet
//	following:U:V  since when U follows V, or no longer; written and never read
//	followers:V:U  the same by V
//
// transactions use
//
//	20%  tweet        w tweet, w last
//	40%  follow       w followers, w following, r follows, w follows; half of them unfollow
//	10%  timeline     r follows, and of up to 20 that the user follows r last and r tweet
//	10%  show follows r follows
//	20%  show tweets  r last, and r of that tweet and of the ten tweets before
//
// Users are drawn by Zipf with exponent 0.5, whom they follow with 0.99. In the beginning
// everybody follows himself. Which last tweets a timeline reads is what the user follows at
// that time; which tweets are read depends on the last ones that the transaction read.
//
// The registers of last and follows are numbered from 0, tweets above them. All tweets are
// kept: some 60 bytes each.
type twitter struct {
	users   int
	tweets  int64     // the number of the last tweet; the first is 1
	follows [][]int32 // by user, ascending
	active  *Popularity
	famous  *Popularity
}

// deed is what a transaction does at C-Twitter.
type deed struct {
	kind       deedKind
	user, whom int32
}

type deedKind uint8

const (
	noDeed deedKind = iota
	tweets
	follows
	unfollows
	timeline
	showFollows
	showTweets
)

// looks tells whether what the transaction reads depends on what it has read.
func (d deed) looks() bool { return d.kind >= timeline }

func newTwitter(users int) twitter {
	w := twitter{users: users, follows: make([][]int32, users), active: NewZipf(users, 0.5), famous: NewZipf(users, 0.99)}
	for u := range w.follows {
		w.follows[u] = []int32{int32(u)}
	}
	return w
}

func (w *twitter) last(user int32) ref     { return int64(user) }
func (w *twitter) followed(user int32) ref { return int64(w.users) + int64(user) }
func (w *twitter) tweet(number int64) ref  { return 2*int64(w.users) + number - 1 }
func (w *twitter) names() []string {
	out := make([]string, 2*w.users)
	for u := range w.users {
		out[w.last(int32(u))] = "last:" + strconv.Itoa(u)
		out[w.followed(int32(u))] = "follows:" + strconv.Itoa(u)
	}
	return out
}

// happen changes who follows whom when a transaction takes effect.
func (w *twitter) happen(d deed) {
	if d.kind != follows && d.kind != unfollows {
		return
	}
	list := w.follows[d.user]
	i, there := slices.BinarySearch(list, d.whom)
	switch {
	case d.kind == follows && !there:
		w.follows[d.user] = slices.Insert(list, i, d.whom)
	case d.kind == unfollows && there:
		w.follows[d.user] = slices.Delete(list, i, i+1)
	}
}

// tweeting decides what transaction t does. One that looks gets its operations when
// it reads.
func (g *Generator) tweeting(t *running) {
	w := &g.twitter
	d := deed{user: int32(w.active.Draw(g.rng))}
	switch dice := g.rng.IntN(100); {
	case dice < 20:
		d.kind = tweets
		w.tweets++
		g.grow(w.tweet(w.tweets))
		g.put(t, record.Write, w.tweet(w.tweets), g.tweetName(w.tweets), record.Int(g.fresh()))
		g.put(t, record.Write, w.last(d.user), g.store.names[w.last(d.user)], record.Int(w.tweets))
	case dice < 60:
		d.kind, d.whom = follows, int32(w.famous.Draw(g.rng))
		if g.rng.IntN(2) == 0 {
			d.kind = unfollows
		}
		g.put(t, record.Write, unread, g.pairName("followers:", d.whom, d.user), record.Int(g.fresh()))
		g.put(t, record.Write, unread, g.pairName("following:", d.user, d.whom), record.Int(g.fresh()))
		list := w.followed(d.user)
		g.put(t, record.Read, list, g.store.names[list], record.Null)
		g.put(t, record.Write, list, g.store.names[list], record.Int(g.fresh()))
	case dice < 70:
		d.kind = timeline
	case dice < 80:
		d.kind = showFollows
	default:
		d.kind = showTweets
	}
	t.deed = d
}

// look does what a transaction that looks reads, now. It returns false if one of its
// reads has no version to return.
func (g *Generator) look(t *running) bool {
	w, d := &g.twitter, t.deed
	g.room(lookMax)
	from := len(g.ops)
	t.keys = t.keys[:0]
	ok := true
	see := func(k ref, name string) record.Value {
		if !ok {
			return record.Null
		}
		var v record.Value
		v, ok = g.holds(k)
		g.put(t, record.Read, k, name, v)
		return v
	}
	switch d.kind {
	case timeline:
		see(w.followed(d.user), g.store.names[w.followed(d.user)])
		list := w.follows[d.user]
		for _, u := range list[:min(len(list), timelineMax)] {
			if v := see(w.last(u), g.store.names[w.last(u)]); v != g.initial {
				see(w.tweet(v.Num), g.tweetName(v.Num))
			}
		}
	case showFollows:
		see(w.followed(d.user), g.store.names[w.followed(d.user)])
	case showTweets:
		if v := see(w.last(d.user), g.store.names[w.last(d.user)]); v != g.initial {
			for n := max(1, v.Num-tweetsShown); n <= v.Num; n++ {
				see(w.tweet(n), g.tweetName(n))
			}
		}
	}
	if !ok {
		g.ops = g.ops[:from]
		return false
	}
	t.record.Ops = g.ops[from:len(g.ops):len(g.ops)]
	return true
}

// grow makes a place in the store for a further register.
func (g *Generator) grow(k ref) {
	if chooses(g.cfg.Level) {
		g.choice.tabled = append(g.choice.tabled, nil)
	} else {
		g.store.tabled = append(g.store.tabled, cell{})
	}
	if n := len(g.choice.tabled) + len(g.store.tabled); int64(n) != k+1 {
		panic(fmt.Sprintf("generate: can't happen, because tweets are numbered one after the other: %d places for register %d", n, k))
	}
}

// put adds an operation of C-Twitter.
func (g *Generator) put(t *running, kind record.OpKind, k ref, name string, v record.Value) {
	g.ops = append(g.ops, record.Op{Kind: kind, Key: name, Value: v})
	t.keys = append(t.keys, k)
}

// fresh is a value that nobody has written.
func (g *Generator) fresh() int64 {
	g.values++
	return g.values
}

func (g *Generator) tweetName(number int64) string {
	var b [32]byte
	return g.store.text.String(strconv.AppendInt(append(b[:0], "tweet:"...), number, 10))
}

func (g *Generator) pairName(prefix string, a, b int32) string {
	var buf [40]byte
	name := strconv.AppendInt(append(buf[:0], prefix...), int64(a), 10)
	return g.store.text.String(strconv.AppendInt(append(name, ':'), int64(b), 10))
}
