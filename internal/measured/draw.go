package measured

import (
	"math"

	"slosim/sim/rng"
)

// Loads whose requests are not published one by one are drawn, always the same
// for a run's name.

// poisson draws arrivals at a rate for some seconds, with promptsInTurn prompts
// that are sent in turn.
func poisson(run *Run, stream string, rate, seconds float64, prompt, output int) {
	gaps := rng.New(1, rng.Gap, stream)
	t := 0.0
	for i := int64(0); ; i++ {
		t += rng.Exp(gaps.Float64(i)) / rate
		if t > seconds {
			return
		}
		run.Load.Requests = append(run.Load.Requests, Request{At: t, Prompt: prompt, Output: max(1, output), Content: uint64(i%promptsInTurn) + 1, Skip: i < coldRequests})
	}
}

// closedLoop draws n requests that a client sends with a cap of so many in
// flight, all waiting from the start. Lengths are uniform in [least·mean, mean].
func closedLoop(run *Run, stream string, n, inFlight, prompt, output int, least float64) {
	prompts, outputs := rng.New(1, rng.PromptLength, stream), rng.New(1, rng.OutputLength, stream)
	length := func(most int, u float64) int {
		lo := least * float64(most)
		return max(1, int(math.Round(lo+(float64(most)-lo)*u)))
	}
	for i := range int64(n) {
		run.Load.Requests = append(run.Load.Requests, Request{Prompt: length(prompt, prompts.Float64(i)), Output: length(output, outputs.Float64(i))})
	}
	run.Load.InFlight = inFlight
}

// steadyLoad draws n requests of lognormal output length for a client that keeps
// a number in flight.
func steadyLoad(run *Run, stream string, n, inFlight int, prompt, output, sigma float64) {
	prompts, outputs := rng.New(1, rng.PromptLength, stream), rng.New(1, rng.OutputLength, stream)
	draw := func(mean, u float64) int {
		return max(1, int(math.Round(mean*math.Exp(sigma*rng.Normal(u)-sigma*sigma/2))))
	}
	for i := range int64(n) {
		run.Load.Requests = append(run.Load.Requests, Request{Prompt: draw(prompt, prompts.Float64(i)), Output: draw(output, outputs.Float64(i))})
	}
	run.Load.InFlight = inFlight
	run.Load.SteadyBatch = inFlight
}
