import type { ChildProcess } from 'node:child_process'
import { readSync } from 'node:fs'

/**
 * Waits for a byte on stdin, and does nothing else meanwhile. A process that is to be stopped waits so for the signal: one
 * that sent it to itself could get the signal to continue before it, and would never continue.
 */
export function standStill(): void {
  readSync(0, Buffer.alloc(1))
}

/** Stops a process that stands still. */
export function stopProcess(child: ChildProcess): void {
  child.kill('SIGSTOP')
}

/** Lets a process continue that was stopped where it stood still. */
export function continueProcess(child: ChildProcess): void {
  child.kill('SIGCONT')
  child.stdin?.write('\n')
}
