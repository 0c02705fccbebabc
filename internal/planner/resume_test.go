package planner

import (
	"context"
	"reflect"
	"testing"

	"slosim/internal/progress"
)

// An interrupted study goes on where it was: what was simulated is not simulated again,
// and the answer is that of a study that nobody interrupted.
func TestInterruptedStudiesGoOn(t *testing.T) {
	e, err := loading(tiny(20, 1500, 100, "400ms", "30ms", 2))("duration=5m")
	if err != nil {
		t.Fatal(err)
	}
	span := Span{Duration: 20e9, Warmup: 10e9}
	draw := func(ctx context.Context, store string, stop context.CancelFunc) (*Curve, int64, error) {
		requests, all := int64(0), 0
		c, err := DrawCurve(ctx, e, span, Options{Workers: 1, Store: store, Progress: func(p progress.State) {
			requests = p.Requests
			if all++; all == 12 && stop != nil {
				stop()
			}
		}})
		return c, requests, err
	}
	want, whole, err := draw(context.Background(), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	store := t.TempDir()
	ctx, stop := context.WithCancel(context.Background())
	if _, _, err := draw(ctx, store, stop); err == nil {
		t.Fatal("it was not interrupted")
	}
	got, rest, err := draw(context.Background(), store, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got.Points, want.Points) || rest >= whole || rest == 0 {
		t.Errorf("%d of %d requests were simulated again; the same answer: %v", rest, whole, reflect.DeepEqual(got.Points, want.Points))
	}
	if _, again, err := draw(context.Background(), store, nil); err != nil || again != 0 {
		t.Errorf("a finished study simulates %d requests again, %v", again, err)
	}
}
