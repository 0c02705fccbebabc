package sim

import (
	"reflect"
	"testing"
	"unsafe"

	"slosim/workloads"
)

// What a first token and an end look at lies in the first line of a processor's cache,
// and a flight fills whole lines.
func TestAFlightsFirstLine(t *testing.T) {
	var f flight
	if end := unsafe.Offsetof(f.req) + unsafe.Offsetof(f.req.Cohort) + unsafe.Sizeof(f.req.Cohort); end != 64 {
		t.Errorf("the first part of a flight ends at %d", end)
	}
	if n := unsafe.Sizeof(f); n%64 != 0 {
		t.Errorf("a flight takes %d bytes", n)
	}
}

// What a request has beyond the first line of a flight makes it one that is not plain.
func TestPlainRequestsDifferInTheFirstLine(t *testing.T) {
	first := workloads.Request{ID: 7, Prompt: 1, Output: 1}
	for k := range reflect.TypeFor[workloads.Request]().NumField() {
		r := first
		switch v, name := reflect.ValueOf(&r).Elem().Field(k), reflect.TypeOf(r).Field(k).Name; name {
		case "ID": // that of the slot
		case "Chain":
			r.Chain = workloads.Private(3)
		default:
			v.Set(reflect.ValueOf(2).Convert(v.Type()))
		}
		var f flight
		f.takes(&first, -1, 0)
		if f.asks(&r); r.Plain() != reflect.DeepEqual(f.req, r) {
			t.Errorf("plain: %v; the flight has %+v of %+v", r.Plain(), f.req, r)
		}
		if f.takes(&r, -1, 0); f.plain != r.Plain() || !reflect.DeepEqual(f.req, r) {
			t.Errorf("the flight took %+v of %+v", f.req, r)
		}
	}
}

// A timer is of the use of a slot that set it.
func TestTimersKnowTheirRequest(t *testing.T) {
	var f flight
	f.renew()
	old := f.ticket(5)
	if f.ticket(5) != old || !f.expects(old) {
		t.Error("a request does not expect its own timer")
	}
	if f.renew(); f.expects(old) {
		t.Error("a request without timers expects that of the one before it")
	}
	if now := f.ticket(5); f.expects(old) || !f.expects(now) {
		t.Error("a request expects the timer of the one before it")
	}
}
