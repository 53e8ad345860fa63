package name

// Broken is for tests.
var Broken = broken
