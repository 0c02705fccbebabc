// Package queue hands out tasks and brings back their answers: to goroutines of
// this program, or over NATS JetStream to worker processes anywhere.
//
// A task is bytes with an address, its Key; an answer is bytes. What they mean is the
// caller's. Both queues promise the same:
//
//   - Keep is called at most once per Do, with a whole answer, before the queue
//     forgets it: what is kept is the truth, the queue is only the way there.
//   - A task that fails (Failure) is an answer too; it is not tried again.
//   - A worker that dies, stops answering or cannot work gives its task back.
//
// Over NATS delivery is at least once; it has the effect of exactly once because a
// task has one subject, so that it is queued once however often it is published, an
// answer has one subject, of which the first message wins, and answers are a pure
// function of the task. A task is given out at most MaxDeliveries times.
//
// Subjects carry the fingerprint of the program: coordinator and worker must be the
// same binary, or they do not meet; the worker is told (ErrVersion).
package queue
