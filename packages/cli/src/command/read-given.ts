import { readFileSync } from 'node:fs'
import { CommandError } from './exit-code.ts'

/** The text of a file that the command line names. Throws a `CommandError` where it cannot be read. */
export function readGiven(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new CommandError('not_found', `${file} cannot be read (${reason}). Look at the path.`, { cause })
  }
}
