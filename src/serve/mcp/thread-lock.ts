/**
 * Tells the server whether the thread is working: Node crashes if it exits while a thread is inside SQLite. The thread takes the
 * lock before each order, so a server that is ending can keep it from starting one. A message would come too late, because a
 * thread that is still loading does not answer.
 */
export function createThreadLock(shared = new SharedArrayBuffer(4)) {
  const state = new Int32Array(shared)
  const IDLE = 0
  const WORKING = 1
  const CLOSED = 2
  return {
    shared,
    /** Returns false if the server is ending, and nothing may begin. */
    begin: () => Atomics.compareExchange(state, 0, IDLE, WORKING) !== CLOSED,
    finish: () => void Atomics.compareExchange(state, 0, WORKING, IDLE),
    /** Returns false if the thread is working. */
    close: () => Atomics.compareExchange(state, 0, IDLE, CLOSED) !== WORKING,
  }
}
