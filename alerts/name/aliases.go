package name

// Aliases are other names of a violation, those that say most first.
func (n Name) Aliases() []string { return Aliases(n.Name, n.Adya) }

// Aliases are other names of what is called so, with the phenomenon that it is.
func Aliases(name, adya string) []string {
	out := []string{}
	if adya != "" {
		out = append(out, adya)
	}
	return out
}
