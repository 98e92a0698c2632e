import { TallystickError, type Ledger, type RunId } from '@tallystick/core'
import { damagedLine, type ImportedLine } from './import-line.ts'

/** So many runs are remembered; of others it is found out again. */
const maxSoundRuns = 100_000

/** Follows where imported runs come from, so that no run comes from itself, through whichever others. */
export class ImportedOrigins {
  readonly #ledger: Ledger
  /** Runs whose origins lead to a run that came from nothing. */
  readonly #sound = new Set<RunId>()

  constructor(ledger: Ledger) {
    this.#ledger = ledger
  }

  /**
   * Throws a `LedgerDamagedError` at the first event of a run that would close a circle. To be asked when everything
   * before that line is in the ledger.
   */
  async requireNoCircle({ line, event }: ImportedLine): Promise<void> {
    if (event.type !== 'run_started') return
    const { runId } = event
    const passed = [runId]
    let from = event.parent?.runId
    while (from !== undefined && !this.#sound.has(from)) {
      if (from === runId) throw damagedLine(line, circleText(passed))
      passed.push(from)
      const origin = await this.#originOf(from)
      // A run that is not in the ledger may still come, and then name one of these.
      if (origin === 'unknown') return
      from = origin
    }
    if (this.#sound.size + passed.length > maxSoundRuns) this.#sound.clear()
    for (const each of passed) this.#sound.add(each)
  }

  async #originOf(runId: RunId): Promise<RunId | undefined | 'unknown'> {
    try {
      for await (const event of this.#ledger.read(runId, { toSeq: 1 })) {
        return event.type === 'run_started' ? event.parent?.runId : undefined
      }
      return 'unknown'
    } catch (error) {
      // A damaged run that stood there before is not what is imported: verify names it.
      if (error instanceof TallystickError) return 'unknown'
      throw error
    }
  }
}

function circleText(runIds: readonly RunId[]): string {
  const [runId] = runIds
  if (runIds.length === 1) return `run ${runId} says that it comes from itself.`
  return `run ${runId} says that it comes from run ${runIds[1]}, which comes from it: no run began first.`
}
