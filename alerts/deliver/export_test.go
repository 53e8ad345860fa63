package deliver

// ScanMax is how many notices of an outbox are looked at at once.
const ScanMax = scanMax

// Scrub is what is shown of an answer.
var Scrub = scrub
