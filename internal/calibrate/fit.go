package calibrate

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize"
)

// Fitted is one fitted constant.
type Fitted struct {
	Parameter
	Value      float64
	Start      float64
	Error      float64 // standard error, of data and start together
	AtBound    bool
	Identified bool // the data halve what was unknown before
}

// Fit is the result of a calibration.
type Fit struct {
	Params         []Fitted
	Held           []Held
	Before, Within float64 // mean absolute error of the figures, at the start and fitted
	CrossValidated float64 // the same on figures that the fit did not see; NaN if there are too few
	Folds          int
	Figures        int
	Rows           []FitRow
	Evaluations    int
}

// FitRow is one figure of the fit.
type FitRow struct {
	Name          string
	Before, After float64 // relative error
	Noise         float64
}

// Limits of the search.
const (
	mostTrials  = 500
	foldTrials  = 200
	leastFolds  = 3
	boundShare  = 1e-3 // of the range: nearer than this to a bound is at it
	step        = 0.2  // of a width, for derivatives
	halfUnknown = 0.25 // variance left of what was unknown before
)

// Options of a fit.
type Options struct {
	Params        []Parameter
	Held          []Held
	FromCatalogue bool             // start at the catalogue's constants instead of the experiment's
	Progress      func(trials int) // called now and then
	Check         bool             // cross-validate
}

// Run fits the constants. It fails when there are fewer figures than constants.
func Run(ctx context.Context, cases []Case, o Options) (*Fit, error) {
	if len(cases) == 0 {
		return nil, errors.New("there is no run to fit on")
	}
	p := &problem{params: o.Params, held: o.Held, cases: cases}
	for i := range o.Params {
		p.start = append(p.start, o.Params[i].start(&cases[0].Experiment, o.FromCatalogue))
	}
	before, err := p.residuals(ctx, p.start, fold{})
	if err != nil {
		return nil, err
	}
	if len(before) <= len(o.Params) {
		return nil, fmt.Errorf("%d figures are too few to fit %d constants: measure more runs, or fit fewer constants with --fit", len(before), len(o.Params))
	}
	f := &Fit{Held: o.Held, Figures: len(before), Before: meanAbs(before), CrossValidated: math.NaN()}
	x, n, err := p.minimise(ctx, fold{}, mostTrials, o.Progress)
	if err != nil {
		return nil, err
	}
	f.Evaluations = n
	values, _ := p.values(x)
	after, err := p.residuals(ctx, values, fold{})
	if err != nil {
		return nil, err
	}
	f.Within = meanAbs(after)
	for i := range after {
		f.Rows = append(f.Rows, FitRow{after[i].name, math.Expm1(before[i].error), math.Expm1(after[i].error), after[i].sigma})
	}
	variance, err := p.variance(ctx, x)
	if err != nil {
		return nil, err
	}
	for i, q := range o.Params {
		near := boundShare * (q.Hi - q.Lo)
		f.Params = append(f.Params, Fitted{Parameter: q, Value: values[i], Start: p.start[i], Error: math.Sqrt(variance[i]) * q.Width,
			AtBound: values[i]-q.Lo < near || q.Hi-values[i] < near, Identified: variance[i] < halfUnknown})
	}
	if o.Check {
		err = p.crossValidate(ctx, f, o.Progress)
	}
	return f, err
}

// minimise searches from the start by Nelder and Mead's simplex: the loss is a
// simulation's, without derivatives, and a little rough.
func (p *problem) minimise(ctx context.Context, f fold, trials int, progress func(int)) ([]float64, int, error) {
	n := 0
	problem := optimize.Problem{
		Func: func(x []float64) float64 {
			if n++; progress != nil {
				progress(n)
			}
			return p.loss(ctx, x, f)
		},
		Status: func() (optimize.Status, error) {
			if ctx.Err() != nil {
				return optimize.Failure, ctx.Err()
			}
			return optimize.NotTerminated, nil
		},
	}
	settings := &optimize.Settings{FuncEvaluations: trials, Concurrent: 1,
		Converger: &optimize.FunctionConverge{Absolute: 1e-3, Relative: 1e-4, Iterations: 40}}
	r, err := optimize.Minimize(problem, make([]float64, len(p.params)), settings, &optimize.NelderMead{SimplexSize: 0.8})
	if r == nil || ctx.Err() != nil {
		return nil, n, errors.Join(err, ctx.Err())
	}
	if math.IsInf(r.F, 0) {
		return nil, n, errors.New("no set of constants could be simulated")
	}
	return r.X, n, nil
}

// variance returns, in squared widths, how uncertain each constant is after the
// fit: the diagonal of (JᵀJ + 1)⁻¹, J the derivatives of the residuals over their
// noise and the start known to one width.
func (p *problem) variance(ctx context.Context, x []float64) ([]float64, error) {
	k := len(x)
	var columns [][]float64
	for i := range x {
		var sides [2][]residual
		for s, d := range []float64{-step, step} {
			y := append([]float64(nil), x...)
			y[i] += d
			values, _ := p.values(y)
			var err error
			if sides[s], err = p.residuals(ctx, values, fold{}); err != nil {
				return nil, err
			}
		}
		column := make([]float64, len(sides[0]))
		for j := range column {
			column[j] = (sides[1][j].error - sides[0][j].error) / (2 * step * sides[0][j].sigma)
		}
		columns = append(columns, column)
	}
	m := mat.NewSymDense(k, nil)
	for a := range k {
		for b := a; b < k; b++ {
			sum := 0.0
			for j := range columns[a] {
				sum += columns[a][j] * columns[b][j]
			}
			if a == b {
				sum++
			}
			m.SetSym(a, b, sum)
		}
	}
	var chol mat.Cholesky
	var inverse mat.SymDense
	if !chol.Factorize(m) || chol.InverseTo(&inverse) != nil {
		return nil, errors.New("the constants' uncertainty cannot be computed")
	}
	out := make([]float64, k)
	for i := range out {
		out[i] = inverse.At(i, i)
	}
	return out, nil
}

// crossValidate fits again without a part and looks at the error on that part:
// without one run when there are several, else without a quarter of the requests.
func (p *problem) crossValidate(ctx context.Context, f *Fit, progress func(int)) error {
	train, test := p.folds()
	sum, n := 0.0, 0
	for k := range train {
		x, trials, err := p.minimise(ctx, train[k], foldTrials, progress)
		if err != nil {
			return err
		}
		f.Evaluations += trials
		values, _ := p.values(x)
		left, err := p.residuals(ctx, values, test[k])
		if err != nil {
			return err
		}
		for _, r := range left {
			sum += math.Abs(math.Expm1(r.error))
			n++
		}
	}
	if f.Folds = len(train); n > 0 {
		f.CrossValidated = sum / float64(n)
	}
	return nil
}

func (p *problem) folds() (train, test []fold) {
	if len(p.cases) >= leastFolds {
		for k := range min(len(p.cases), 5) {
			in, out := map[int]bool{}, map[int]bool{}
			for i := range p.cases {
				if i%min(len(p.cases), 5) == k {
					out[i] = true
				} else {
					in[i] = true
				}
			}
			train, test = append(train, fold{cases: in}), append(test, fold{cases: out})
		}
		return train, test
	}
	known := map[int]bool{}
	for i := range p.cases {
		if p.cases[i].known() {
			known[i] = true
		}
	}
	if len(known) == 0 {
		return nil, nil
	}
	for k := range blocks {
		in := map[int]bool{}
		for b := range blocks {
			if b != k {
				in[b] = true
			}
		}
		train, test = append(train, fold{known, in}), append(test, fold{known, map[int]bool{k: true}})
	}
	return train, test
}

func meanAbs(list []residual) float64 {
	sum := 0.0
	for _, r := range list {
		sum += math.Abs(math.Expm1(r.error))
	}
	return sum / float64(len(list))
}
