// Package ready holds an experiment against the launch checklist: six items, each
// met or not, with the evidence that the experiment and its run give. With fewer
// than four met, no promise should be made.
package ready
