package planner

import (
	"errors"
	"fmt"
)

// InputError says that an experiment or a flag does not fit the question.
type InputError struct{ err error }

func (e *InputError) Error() string { return e.err.Error() }

func (e *InputError) Unwrap() error { return e.err }

// IsInput tells whether err is the fault of the input.
func IsInput(err error) bool {
	var e *InputError
	return errors.As(err, &e)
}

func inputErrorf(format string, args ...any) error {
	return &InputError{fmt.Errorf(format, args...)}
}
