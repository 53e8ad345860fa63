package budget

import "testing"

// A share ends when all is used up and it has used its part; what others did not need it may use before.
func TestSharesEndAlone(t *testing.T) {
	b := &Budget{HeldMax: 100}
	b.Grant(90, 20)
	greedy, modest := b.Share(), b.Share()
	if !greedy.Take(80) || !b.Half() {
		t.Error("80 of 90 steps are not to be had, or are less than half")
	}
	if greedy.Take(20) || !b.Ended() {
		t.Error("100 of 90 steps are to be had")
	}
	if !modest.Take(40) || modest.Take(5) {
		t.Error("the other share has not 45 steps")
	}
	if !modest.Certain(40) || modest.Certain(10) {
		t.Error("what is certain has not as much again")
	}

	b = &Budget{HeldMax: 100}
	b.Grant(90, 20)
	greedy, modest = b.Share(), b.Share()
	greedy.Hold(89)
	if !greedy.Roomy() {
		t.Error("89 of 120 bytes leave no room")
	}
	if greedy.Hold(1); greedy.Roomy() || greedy.Ended() || !modest.Roomy() {
		t.Error("90 of 120 bytes do not leave room for the other share alone")
	}
	greedy.Hold(30)
	if modest.Hold(59); !greedy.Ended() || modest.Ended() {
		t.Error("of 120 bytes and 59 more not only the first share has ended")
	}
	if modest.Hold(1); !modest.Ended() {
		t.Error("60 of 120 bytes do not end the second of two shares")
	}
}
