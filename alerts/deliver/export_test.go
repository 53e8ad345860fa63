package deliver

// ScanMax is how many notices of an outbox are looked at at once.
const ScanMax = scanMax
