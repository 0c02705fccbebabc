package experiments

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"slosim/internal/config"
	"slosim/sim/clock"
	"slosim/workloads"
)

const (
	maxRate     = 1e6 // requests per second
	maxUsers    = 1_000_000
	maxFactor   = 1000.0
	maxPriority = 1_000_000
	maxVariants = 1_000_000
	minRepeat   = 10 * clock.Second // of bursts: a window of a year holds millions of them
)

// class reads one [[traffic]] table.
func (l *loader) class(t *config.Table) workloads.Class {
	c := workloads.Class{Name: name(t, "class", `"chat"`)}
	c.Stream = config.Read(t, "stream", config.Text, config.Default(c.Name, "key of the class's random draws"))
	c.Client.MaxInFlight = config.Read(t, "max_in_flight", config.Int, config.Default(0, "no client-side limit"), config.Between(0, maxUsers))
	c.Client.Users = config.Read(t, "users", config.Int, config.Default(0, "an open loop: arrivals do not wait for answers"), config.Between(0, maxUsers))

	c.Priority = int32(config.Read(t, "priority", config.Int, config.Default(0, `smaller goes first under policy = "priority"`), config.Example[int]("-1"), config.Between(-maxPriority, maxPriority)))
	l.tier(t, c.Name)
	l.stageBudget(t, c.Name)
	c.System = system(t)
	l.client(t, &c.Client)
	l.limit(t)
	c.Hit = hit(t, c.System)

	closed, trace := c.Client.Users > 0, t.Has("trace")
	switch {
	case closed && trace:
		t.Errorf("trace", "", "remove one of the two", "users and trace exclude each other: a trace says itself when its requests come")
	case closed && c.Client.MaxInFlight > 0:
		t.Errorf("max_in_flight", "", "remove one of the two", "users and max_in_flight exclude each other: each user has one request in flight")
	}
	c.Session = session(t, closed || trace || c.Client.MaxInFlight > 0)
	if closed {
		c.Client.Think = think(t)
		forbid(t, "users", "each user sends when the last answer is complete and it has thought", "rate")
	} else {
		forbid(t, "", "think is for users, the closed loop: add users = 100 or remove it", "think")
	}
	switch {
	case trace:
		c.Trace = l.trace(t)
		forbid(t, "trace", "the trace file has the arrivals and lengths", "rate", "prompt", "output", "correlation")
		return c
	case !closed:
		c.Rate = l.rate(t)
	}
	c.Prompt = dist(t, "prompt", tokens, 1)
	c.Output = dist(t, "output", tokens, 1)
	c.Correlation = config.Read(t, "correlation", config.Float, config.Default(0.0, "prompt and output lengths are independent"), config.Example[float64]("0.3"), config.Between(-0.99, 0.99))
	return c
}

// think reads how long a user waits between an answer and its next request; the
// zero Dist for no time at all.
func think(t *config.Table) workloads.Dist {
	if !t.Has("think") {
		t.Know("think")
		t.Doc().Note(t.Path("think"), `"0s"`, "default", "a user sends again at once")
		return workloads.Dist{}
	}
	d := dist(t, "think", seconds, 0)
	if d.Kind == "fixed" && d.Mean == 0 {
		return workloads.Dist{}
	}
	return d
}

// system reads the system prompts that requests begin with.
func system(t *config.Table) workloads.System {
	if !t.Has("system_prompt") {
		t.Know("system_prompt")
		return workloads.System{}
	}
	sub := t.Sub("system_prompt", `system_prompt = { tokens = 1500, variants = 3 }`)
	return workloads.System{
		Tokens: int32(config.Read(sub, "tokens", config.WholeTokens, config.Required, config.Note[int]("the first tokens of every prompt, its length included"),
			config.Example[int]("1500"), config.Between(1, int(maxTokens)))),
		Variants: int32(config.Read(sub, "variants", config.Int, config.Default(1, "all requests share one"), config.Example[int]("3"), config.Between(1, maxVariants))),
		Skew:     config.Read(sub, "skew", config.Float, config.Default(0.0, "equally popular; Zipf: the k-th in proportion to k^-skew"), config.Example[float64]("1.1"), config.Between(0.0, 10)),
	}
}

// hit reads the statistical model of prefix-cache hits.
func hit(t *config.Table, system workloads.System) workloads.Hit {
	if !t.Has("prefix_hit") {
		t.Know("prefix_hit")
		return workloads.Hit{}
	}
	sub := t.Sub("prefix_hit", `prefix_hit = { ratio = "60%", tokens = 1500 }`)
	h := workloads.Hit{
		Ratio:  config.Read(sub, "ratio", config.Share, config.Required, config.Note[float64]("of requests that find a prefix"), config.Example[float64](`"60%"`), config.Between(0.0, 1)),
		Tokens: dist(sub, "tokens", tokens, 1),
	}
	if system.Tokens > 0 {
		t.Errorf("prefix_hit", "", "remove one of the two: system_prompt lets the cache find what it holds, prefix_hit draws it",
			"prefix_hit and system_prompt exclude each other")
	}
	return h
}

// forbid reports keys that another key makes meaningless.
func forbid(t *config.Table, because, why string, keys ...string) {
	for _, key := range keys {
		if !t.Has(key) {
			continue
		}
		t.Know(key)
		if because == "" {
			t.Errorf(key, "", "", "%s", why)
		} else {
			t.Errorf(key, "", "remove "+key+", or remove "+because, "%s has no meaning beside %s: %s", key, because, why)
		}
	}
}

// rateChange is a new rate: a factor or a mean.
type rateChange struct{ factor, mean float64 }

// rateOrFactor reads "2x" or "8/s".
var rateOrFactor = config.Unit[rateChange]{
	Name: "a rate or a factor", Allowed: `a factor such as "2x", or a new mean such as "8/s"; more than 0`, Example: `"2x"`,
	Parse: func(v any) (rateChange, error) {
		s, ok := v.(string)
		if !ok {
			return rateChange{}, errors.New(`has no unit: is it a factor ("2x") or a rate ("2/s")?`)
		}
		if number, isFactor := strings.CutSuffix(strings.TrimSpace(s), "x"); isFactor {
			f, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
			switch {
			case err != nil || math.IsNaN(f):
				return rateChange{}, errors.New("is no factor")
			case f <= 0:
				return rateChange{}, errors.New("is a factor that is not more than 0")
			case f > maxFactor:
				return rateChange{}, fmt.Errorf("is a factor of more than %g", maxFactor)
			}
			return rateChange{factor: f}, nil
		}
		mean, err := config.Rate.Parse(v)
		switch {
		case err != nil:
			return rateChange{}, err
		case mean <= 0:
			return rateChange{}, errors.New("is a rate that is not more than 0")
		case mean > maxRate:
			return rateChange{}, fmt.Errorf("is a rate of more than %s", config.RateText(maxRate))
		}
		return rateChange{mean: mean}, nil
	},
	Format: func(c rateChange) string {
		if c.mean > 0 {
			return config.Rate.Format(c.mean)
		}
		return fmt.Sprintf("%q", strings.Trim(config.Float.Format(c.factor), `"`)+"x")
	},
}
