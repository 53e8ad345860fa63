package deliver

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// accepted tells whether a status says that the alert was taken.
func accepted(status int) bool { return status >= 200 && status < 300 }

// again tells whether another attempt may help after a status that is not
// accepted. What the receiver says about the notice itself is final. That it is busy,
// broken or elsewhere is not, and neither is that nobody is there under this address
// or that it does not know who asks (Slack says so of a channel that is archived): a
// person can put that right, and then wants to hear what happened meanwhile.
func again(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden, http.StatusNotFound,
		http.StatusMethodNotAllowed, http.StatusProxyAuthRequired,
		http.StatusRequestTimeout, http.StatusConflict, http.StatusGone, http.StatusMisdirectedRequest, http.StatusLocked,
		http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return status < 400 || status >= 500
}

// retryAfter reads the header Retry-After: seconds or a date. 0 if there is
// none that makes sense.
func retryAfter(h http.Header, now time.Time) time.Duration {
	v := strings.TrimSpace(h.Get("Retry-After"))
	if n, err := strconv.ParseUint(v, 10, 32); err == nil {
		return min(time.Duration(n)*time.Second, retryAfterMax)
	}
	if at, err := http.ParseTime(v); err == nil {
		return min(max(at.Sub(now), 0), retryAfterMax)
	}
	return 0
}
