// Package glob compares texts with patterns: those of the configuration in which nothing
// but * and ? has a meaning of its own.
package glob

// Match tells whether all of s is what a pattern stands for: * for any characters, ? for
// one, every other for itself. O(len(pattern)·len(s)).
func Match(pattern, s string) bool {
	p, t := []rune(pattern), []rune(s)
	star, from := -1, 0 // where the last * is, and what it ends before
	i, j := 0, 0
	for j < len(t) {
		switch {
		case i < len(p) && p[i] == '*':
			star, from = i, j
			i++
		case i < len(p) && (p[i] == '?' || p[i] == t[j]):
			i++
			j++
		case star >= 0: // let it take one more
			from++
			i, j = star+1, from
		default:
			return false
		}
	}
	for i < len(p) && p[i] == '*' {
		i++
	}
	return i == len(p)
}
