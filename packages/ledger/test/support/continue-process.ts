import type { ChildProcess } from 'node:child_process'

/**
 * Lets a process continue that stops itself. It says so before it stops, and a signal that comes between is lost: so
 * the signal is sent again until the process has ended.
 */
export function continueProcess(child: ChildProcess): void {
  child.kill('SIGCONT')
  const signals = setInterval(() => child.kill('SIGCONT'), 20)
  child.once('exit', () => clearInterval(signals))
}
