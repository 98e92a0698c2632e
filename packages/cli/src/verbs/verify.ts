import type { Ledger } from '@tallystick/core'
import type {
  CheckpointFault,
  CheckpointsVerdict,
  RunVerdict,
  StoreVerdict,
  VerifyCheckpointsOptions,
} from '@tallystick/ledger'
import { verifyCheckpoints, verifyLedger } from '@tallystick/ledger'
import type { CommandContext } from '../command-context.ts'
import { commandLine } from '../command-context.ts'
import { countEvents } from '../count-events.ts'
import type { ExitCode } from '../exit-code.ts'
import { CommandError, exitCodes } from '../exit-code.ts'
import { withLedger } from '../open-ledger.ts'
import { readGiven } from '../read-given.ts'
import type { Paint } from '../view/paint.ts'
import { withProgress, type Progress } from '../view/progress.ts'
import { counted } from '../view/run-ending.ts'

/** What `verify` was given. */
export interface VerifyOptions {
  readonly ledger: string
  /** File of signed checkpoints. */
  readonly checkpoints?: string
  /** File of the key that verifies them. */
  readonly publicKey?: string
  readonly origin?: string
}

/**
 * `verify`: a line a run, one for the whole ledger, and one for the checkpoints where there are some. Exit code 4 where
 * anything is not what was written, or not what was signed.
 */
export function verify(context: CommandContext, options: VerifyOptions): Promise<ExitCode> {
  const { json, paint, print, programName, say } = context
  const { ledger: ledgerPath } = options
  const signed = checkpointsOf(options)
  return withLedger(ledgerPath, 'read', async (ledger) => {
    let sound = await withProgress(
      context,
      () => countEvents(ledger),
      (progress) => verifyRuns(progress, ledger),
    )
    if (signed) {
      const verdict = await verifyCheckpoints(ledger, signed)
      sound &&= verdict.ok
      await print(`${json ? JSON.stringify(verdict) : checkpointsText(verdict, paint)}\n`)
    }
    if (sound) return exitCodes.ok
    if (!json) {
      const look = commandLine(programName, 'export', ledgerPath)
      say(
        `This ledger is not what was written. Keep the file as it is, go on with a copy from before, and see what can still be read: ${look}`,
      )
    }
    return exitCodes.damaged
  })
}

/** Prints a verdict of each run and one of the whole; answers whether all is as it was written. */
async function verifyRuns({ context, add }: Progress, ledger: Ledger): Promise<boolean> {
  const { json, paint, print } = context
  let sound = true
  for await (const verdict of verifyLedger(ledger)) {
    sound &&= verdict.ok
    await print(`${json ? JSON.stringify(verdict) : verdictText(verdict, paint)}\n`)
    if (verdict.scope === 'run') add(verdict.events)
  }
  return sound
}

function checkpointsOf({
  checkpoints: file,
  publicKey,
  origin,
}: VerifyOptions): VerifyCheckpointsOptions | undefined {
  if (file === undefined && publicKey === undefined) return undefined
  if (file === undefined || publicKey === undefined) {
    throw new CommandError(
      'usage',
      'Checkpoints are verified with the key of whoever signed them: give both --checkpoints FILE and --public-key FILE.',
    )
  }
  return { file, publicKey: readGiven(publicKey), ...(origin !== undefined && { origin }) }
}

function checkpointsText(
  { ok, checkpoints, runs, events, broken }: CheckpointsVerdict,
  paint: Paint,
): string {
  const found = [counted(checkpoints, 'checkpoint'), counted(runs, 'run'), counted(events, 'event')].join(
    ', ',
  )
  if (ok) return `checkpoints  ${paint('green', 'ok')}  ${found} as signed`
  return broken
    .map((place) => `${placeText(place)}  ${paint('red', 'NOT AS SIGNED')}  ${faultText(place)}`)
    .join('\n')
}

function placeText({ runId, checkpoint }: CheckpointFault): string {
  return runId ?? `checkpoint ${checkpoint}`
}

function faultText({ seq, checkpoint, what, expected, found }: CheckpointFault): string {
  const place = seq === undefined ? '' : `at event ${seq}, by checkpoint ${checkpoint}: `
  return `${place}${what} should be ${expected}, is ${found}`
}

function verdictText(verdict: RunVerdict | StoreVerdict, paint: Paint): string {
  const name = verdict.scope === 'run' ? verdict.runId : 'ledger'
  const counts = verdict.scope === 'run' ? [] : [counted(verdict.runs, 'run')]
  const found = [...counts, counted(verdict.events, 'event')].join(', ')
  if (verdict.ok) return `${name}  ${paint('green', 'ok')}  ${found}${missingText(verdict)}`
  return `${name}  ${paint('red', 'DAMAGED')}  ${damageText(verdict)}, ${found} sound`
}

/** What is not there any more, and why. */
function missingText(verdict: RunVerdict | StoreVerdict): string {
  if (verdict.scope === 'store') {
    return verdict.droppedRuns === 0 ? '' : `; ${counted(verdict.droppedRuns, 'run')} dropped, on record`
  }
  return (verdict.missing ?? [])
    .map(({ kind, by, reason, events }) => {
      const who = by === undefined ? '' : ` by ${by}`
      return `; the content of ${counted(events, 'event')} is ${kind}${who}${reason === undefined ? '' : ` (${reason})`}`
    })
    .join('')
}

function damageText(verdict: RunVerdict | StoreVerdict): string {
  if (verdict.scope === 'store' && verdict.broken === undefined)
    return counted(verdict.brokenRuns, 'damaged run')
  const place =
    verdict.scope === 'run' && verdict.broken !== undefined ? `at event ${verdict.broken.seq}: ` : ''
  const { what = '', expected = '', found = '' } = verdict.broken ?? {}
  return `${place}${what} should be ${expected}, is ${found}`
}
