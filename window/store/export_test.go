package store

// Sealed is a value as it is stored.
func Sealed(key string, value []byte) []byte { return seal([]byte(key), value, kindInline) }
