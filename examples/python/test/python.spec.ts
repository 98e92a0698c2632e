import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { describe } from 'vitest'
import { clientRuns } from '../../../clients/php/test/client-runs.ts'

function hasPython(): boolean {
  try {
    const version = 'import sys; print(sys.version_info >= (3, 10))'
    return execFileSync('python3', ['-c', version]).toString() === 'True\n'
  } catch {
    return false
  }
}
const isThere = hasPython()
if (!isThere) console.warn('The client in Python is left out: it needs python3, 3.10 or newer.')

// Needs Python. If it is missing, the line above says so.
describe.skipIf(!isThere)('the back office in Python', () => {
  clientRuns(['python3', '-B', join(import.meta.dirname, '../back_office.py')])
})
