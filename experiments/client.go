package experiments

import (
	"slosim/internal/config"
	"slosim/sim/clock"
	"slosim/workloads"
)

const maxAttempts = 100

// client reads how long callers wait and whether they come back. There is no
// hidden default time-out: without these keys they wait for ever.
func (l *loader) client(t *config.Table, c *workloads.Client) {
	c.Timeout = config.Read(t, "timeout", config.Span, config.Default(clock.Duration(0), "clients wait for ever"), config.Example[clock.Duration](`"60s"`), config.Between(0, maxSpan))
	if t.Has("patience") {
		c.Patience = dist(t, "patience", seconds, 0)
	} else {
		t.Know("patience")
	}
	if !t.Has("retry") {
		t.Know("retry")
		return
	}
	r := &c.Retry
	sub := t.Sub("retry", `retry = { times = 3, backoff = "1s", factor = 2, limit = "30s", jitter = 1 }`)
	r.Times = config.Read(sub, "times", config.Int, config.Required, config.Note[int]("further attempts after a time-out or a 429"), config.Example[int]("3"), config.Between(1, maxAttempts))
	r.Backoff = config.Read(sub, "backoff", config.Span, config.Default(clock.Duration(0), "at once"), config.Example[clock.Duration](`"1s"`), config.Between(0, clock.Hour))
	r.Factor = config.Read(sub, "factor", config.Float, config.Default(1.0, "the same before each attempt"), config.Example[float64]("2"), config.Between(1.0, 10))
	r.Limit = config.Read(sub, "limit", config.Span, config.Default(clock.Duration(0), "no limit"), config.Example[clock.Duration](`"30s"`), config.Between(0, clock.Day))
	r.Jitter = config.Read(sub, "jitter", config.Float, config.Default(0.0, "none"), config.Note[float64]("share of the back-off that is drawn"), config.Example[float64]("1"), config.Between(0.0, 1))
}

// session reads conversations: requests whose prompts grow by what was said.
func session(t *config.Table, otherwise bool) workloads.Session {
	if !t.Has("session") {
		t.Know("session")
		return workloads.Session{}
	}
	if otherwise {
		t.Errorf("session", "", "remove one of the two", "a session paces itself: it stands beside rate, not beside users, trace or max_in_flight")
	}
	if t.Has("prefix_hit") {
		t.Errorf("session", "", "remove prefix_hit", "the turns of a session know themselves what a prefix cache can find")
	}
	sub := t.Sub("session", `session = { turns = { dist = "exponential", mean = 5 }, think = { dist = "exponential", mean = "30s" } }`)
	s := workloads.Session{Turns: dist(sub, "turns", tokens, 1)}
	s.Turns.Max = min(max(s.Turns.Max, 0), workloads.MaxTurns)
	s.Think = think(sub)
	s.MaxContext = int32(config.Read(sub, "max_context", config.WholeTokens, config.Default(0, "no limit but max_model_len"), config.Note[int]("a turn beyond it begins anew"), config.Example[int]("32000"), config.Between(0, 1<<30)))
	return s
}
