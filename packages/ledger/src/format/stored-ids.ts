import { LedgerDamagedError, type RunId } from '@tallystick/core'
import { parseRunId } from '@tallystick/core/vocabulary'

/** A message names so many bad ids, each cut after so many characters. */
const maxIdsNamed = 20
const maxIdCharacters = 80

/**
 * Whether a text from a store is a run id. Ids become part of commands, file names and generated code, so a text of
 * another shape never leaves a store under the type of an id.
 */
export function isRunId(text: unknown): text is RunId {
  return typeof text === 'string' && parseRunId(text) !== undefined
}

/** A value stored as an id, as JSON of printable ASCII: no text can leave its place in a message. */
export function quotedId(text: unknown): string {
  const json = JSON.stringify(String(text).slice(0, maxIdCharacters))
  return json.replaceAll(
    /[^ -~]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** Returns a run's id for a message: as it is, or quoted if it is invalid. */
export function namedRun(runId: string): string {
  return isRunId(runId) ? runId : quotedId(runId)
}

/** A list of runs met rows with invalid run ids. It has listed all other runs before. */
export class BadRunIdsError extends LedgerDamagedError {
  /** The invalid ids in the store. */
  readonly found: readonly string[]

  constructor(found: readonly string[]) {
    const named = found.slice(0, maxIdsNamed).map(quotedId).join(', ')
    const more = found.length > maxIdsNamed ? ` and ${found.length - maxIdsNamed} more` : ''
    super(
      `The ledger holds rows of runs under ids that are no run ids: ${named}${more}. The runtime writes no such rows, and ` +
        'they were left out of the list. Run verify for the whole picture, and restore a copy.',
    )
    this.found = found
  }
}

/** Leaves rows with invalid run ids out of a list, and throws when the list has ended. */
export class RunIdSieve {
  readonly #bad: string[] = []

  /** Whether a row's id is a run id; others are remembered. */
  keeps(text: string): boolean {
    if (isRunId(text)) return true
    this.#bad.push(text)
    return false
  }

  /** Throws a `BadRunIdsError` where rows were left out. */
  end(): void {
    if (this.#bad.length > 0) throw new BadRunIdsError(this.#bad)
  }
}

/** Gets every run of a list; the error is that of rows which had to be left out. */
export async function untilBadIds<T>(
  runs: AsyncIterable<T>,
  onRun: (run: T) => void,
): Promise<{ readonly error?: BadRunIdsError }> {
  try {
    for await (const run of runs) onRun(run)
    return {}
  } catch (error) {
    if (error instanceof BadRunIdsError) return { error }
    throw error
  }
}
