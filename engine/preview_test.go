package engine

import (
	"fmt"
	"testing"

	"slosim/models"
	"slosim/sim/clock"
	"slosim/workloads"
)

// What was foreseen of an arrival leaves no trace in what comes instead: a replica that is
// asked all the time what comes next does what one does that is asked nothing and steps,
// when the arrival is taken back and the clock leaves and returns just before the step
// that would have admitted it, and when a row is taken back that the step was foreseen
// with. How far these are apart is tried so that it falls everywhere between two
// boundaries of some 5 ms; each case fails where a preview is believed by its number alone.
func TestAChangedMindLeavesNoTrace(t *testing.T) {
	const ms = clock.Time(clock.Millisecond)
	clockReturns := func(i int, p *player) {
		p.submit(0, 10, 3000)
		a := p.submit(500*ms, 300, 5)
		p.cancel(510*ms, a)
		p.clock(515*ms, 2)
		p.clock(525*ms+clock.Time(i%100)*ms/4, 1)
		p.submit(600*ms, 100, 3)
	}
	for _, c := range []struct {
		name string
		cfg  Config
		act  func(i int, p *player)
	}{
		{"the arrival and a clock that returns", Config{KVBlocks: 1001, Model: toy{base: 5_000_000_000, token: 3_000_000, ctx: 10_000}}, clockReturns},
		{"the same where blocks are short", Config{KVBlocks: 300, Model: toy{base: 5_000_000_000, token: 3_000_000, ctx: 10_000}}, clockReturns},
		{"a row that ends late, where blocks are short", Config{KVBlocks: 252, Model: toy{base: 5_000_000_000, token: 3_000_000}}, func(i int, p *player) {
			p.submit(0, 10, 3000)
			a := p.submit(0, 10, 1024-9+int32(i/100))
			at := clock.Time(1024-1)*5_006_000 + clock.Time(i%100-20)*2*ms
			p.submit(at, 300, 5)
			p.cancel(at+6*ms, a)
		}},
	} {
		for i := range 3000 {
			c.cfg.MaxBatchedTokens, c.cfg.MaxSeqs, c.cfg.MaxModelLen, c.cfg.BlockSize, c.cfg.Clock = 8192, 16, 4000, 16, 1
			c.cfg.Host = models.Host{Async: i%2 == 0, FrontFixedPs: 40_000_000_000}
			stretched, stepping := c.cfg, c.cfg
			stepping.Stepping = true
			one, other := player{v: NewVLLM(&stretched), asks: true}, player{v: NewVLLM(&stepping)}
			c.act(i/2, &one)
			c.act(i/2, &other)
			if got, want := one.end(), other.end(); got != want {
				t.Fatalf("%s, %d:\nstretched %s\nstepped   %s", c.name, i, got, want)
			}
		}
	}
}

// player plays acts on a replica, one after the other.
type player struct {
	v    *VLLM
	asks bool // what comes next, after every act
	out  []Event
	ids  int32
}

func (p *player) to(now clock.Time) {
	for at, ok := p.next(); ok && at <= now; at, ok = p.next() {
		p.out = p.v.Advance(at, p.out)
	}
	p.out = p.v.Advance(now, p.out)
}

func (p *player) next() (clock.Time, bool) {
	if !p.asks {
		return 0, false
	}
	return p.v.Next()
}

// submit returns what cancel asks for: the handle and the number of the request.
func (p *player) submit(at clock.Time, prompt, output int32) [2]int32 {
	p.to(at)
	r := workloads.Request{ID: p.ids, Prompt: prompt, Output: output}
	p.ids++
	handle := p.v.Submit(at, &r)
	p.next()
	return [2]int32{handle, r.ID}
}

func (p *player) cancel(at clock.Time, request [2]int32) {
	p.to(at)
	for _, e := range p.out {
		if e.ID == request[1] && e.Kind == Finished {
			return
		}
	}
	p.v.Cancel(at, request[0], request[1])
	p.next()
}

func (p *player) clock(at clock.Time, bin int) {
	p.to(at)
	p.v.SetClock(at, bin)
	p.next()
}

// end plays to the end and says what happened.
func (p *player) end() string {
	end := clock.Time(100 * clock.Second)
	p.to(end)
	s := p.v.Spent(end)
	return fmt.Sprint(sorted(p.out), s.Cost, s.Steps, s.Busy)
}
